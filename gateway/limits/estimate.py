"""What a request will use, before anybody knows: tokens and cost to reserve."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings

from gateway.limits.units import to_units
from gateway.pipeline.context import Attempt, RequestContext
from gateway.pipeline.estimate import estimated_tokens
from gateway.wire import ChatCompletionRequest
from integrations.pricing.cost import Price

# Of a file; its bytes say nothing about the tokens that it becomes.
_FILE_TOKENS = 1_500
# Bodies below this size hold no file worth counting apart.
_SMALL_BYTES = 16 * 1024
_MILLION = Decimal(1_000_000)


def prompt_tokens(context: RequestContext) -> int:
    """By the bytes that are sent, files at a flat rate."""
    size, files = len(context.body), 0
    if size > _SMALL_BYTES:
        for message in context.request.messages:
            for part in message.content if isinstance(message.content, list) else ():
                file = part.image_url or part.document_url
                if file is not None:
                    size, files = size - len(file.url), files + 1
    return estimated_tokens(max(size, 0)) + files * _FILE_TOKENS


def completion_tokens(request: ChatCompletionRequest) -> int:
    """As many as the request allows, for each of its choices."""
    allowed = request.max_completion_tokens or request.max_tokens or settings.LIMITS_OUTPUT_TOKENS
    return allowed * (request.n or 1)


def cost_units(price: Price | None, prompt: int, completion: int) -> int:
    """0 without a price: the cost of such a request is not known afterwards either."""
    if price is None:
        return 0
    return to_units((price.input * prompt + price.output * completion) / _MILLION)


def first_price(context: RequestContext, attempts: list[Attempt]) -> Price | None:
    return context.snapshot.price_of(attempts[0].provider, attempts[0].model) if attempts else None
