from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings

from gateway.limits.units import MAX_UNITS, PLACES
from gateway.pipeline.context import Attempt, RequestContext
from gateway.protocol.wire import ChatCompletionRequest
from integrations.pricing.cost import Price
from integrations.providers.usage import estimated_tokens

# An image counts as this many tokens: its bytes say nothing about the tokens that it becomes.
_FILE_TOKENS = 1_500
# A document in the request is counted by its base64 characters: a page of a PDF has some 50 KB and 1,500 tokens.
_DOCUMENT_CHARACTERS_PER_TOKEN = 40
# Bodies below this size contain no file that is worth counting separately.
_SMALL_BYTES = 16 * 1024
# Prices are for a million tokens.
_UNITS_OF_MILLIONTH = 10 ** (PLACES - 6)


def prompt_tokens(context: RequestContext) -> int:
    return tokens_of_prompt(context.body, context.request)


def tokens_of_prompt(body: bytes, request: ChatCompletionRequest) -> int:
    size, tokens = len(body), 0
    if size > _SMALL_BYTES:
        for message in request.messages:
            for part in message.content if isinstance(message.content, list) else ():
                file = part.image_url or part.document_url
                if file is not None:
                    size -= len(file.url)
                    tokens += _FILE_TOKENS
                    if part.image_url is None:
                        tokens += len(file.url) // _DOCUMENT_CHARACTERS_PER_TOKEN
    return estimated_tokens(max(size, 0)) + tokens


def completion_tokens(request: ChatCompletionRequest) -> int:
    allowed = request.max_completion_tokens or request.max_tokens
    if not allowed:
        allowed = settings.LIMITS_OUTPUT_TOKENS
        if request.thinking is not None:
            allowed += request.thinking.budget_tokens or 0
    return allowed * (request.n or 1)


def cost_units(prices: Iterable[Price | None], prompt: int, completion: int) -> int:
    """Returns the cost by the highest price; 0 without one, since such a request has no known cost later either."""
    highest = 0
    for price in prices:
        if price is not None:
            of_input, of_output, one = price.integers
            units = -(-(of_input * prompt + of_output * completion) * _UNITS_OF_MILLIONTH // one)
            if units > highest:
                highest = units
    return highest if highest < MAX_UNITS else MAX_UNITS


def prices_of(context: RequestContext, attempts: list[Attempt]) -> Iterable[Price | None]:
    """Includes the price at every provider and model that may answer: a request that fails over has to fit as well."""
    snapshot = context.snapshot
    return [attempt.price_in(snapshot) for attempt in attempts]
