"""The most that a request can cost, from its body and the prices that apply. No I/O.

No token is shorter than a byte, so a prompt has at most as many tokens as bytes. They are priced at the dearest input
rate, and the longest answer that the request or its model allows at the dearest output rate. What the request does not
ask for, such as another service tier or a search, is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_UP, Decimal
from typing import Any

import msgspec
from msgspec import structs

from core.errors import ApplicationError
from gateway.pipeline.candidates import access_of, allowed_names, candidates_of
from gateway.protocol.wire import AUTO, ChatCompletionRequest
from gateway.snapshot.project import ProjectSnapshot
from integrations.capabilities.lookup import capabilities_of, max_output_of
from integrations.pricing.cost import PLACES, Price
from integrations.pricing.terms import Rates
from integrations.providers.additions import with_parameters
from integrations.providers.openai.dialect import COMMON_PARAMETERS, OPENAI_PARAMETERS
from integrations.registry import Candidate
from prompts.selectors import PromptVersionRecord

# Providers add instructions of their own to tools and schemas.
_UNSEEN_TOKENS = 1_000
_MILLION = Decimal(1_000_000)
_INPUT = ("input", "cache_read", "cache_write", "cache_write_1h")
_INPUT_OF_FILES = ("input_audio", "input_image", "cache_read_audio")
_OUTPUT = ("output", "output_audio", "output_image", "reasoning")
_SEARCHES = ("search_low", "search_medium", "search_high")
# Models that search for every answer, asked or not: https://docs.perplexity.ai/getting-started/models and
# https://platform.openai.com/docs/guides/tools-web-search.
_SEARCHING = ("sonar", "-search-", ":online")
_WITHOUT_SEARCH = (frozenset(ChatCompletionRequest.__struct_fields__) | COMMON_PARAMETERS | OPENAI_PARAMETERS) - {
    "web_search_options"
}

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def called_once(snapshot: ProjectSnapshot) -> ProjectSnapshot:
    """The project's configuration without retries and failover: one call of a provider per model that a request
    names.
    """
    once = structs.replace(snapshot.settings, retry_enabled=False, fallback_enabled=False)
    return replace(snapshot, settings=once, plain_attempts={}, plans={})


class UnknownCostError(Exception):
    """The cost of a request has no known bound. The message says what is missing and where it is set."""


def highest_cost(
    snapshot: ProjectSnapshot, body: bytes, version: PromptVersionRecord | None = None, *, answers: bool = True
) -> Decimal | None:
    try:
        return known_highest_cost(snapshot, body, version, answers=answers)
    except UnknownCostError:
        return None


def known_highest_cost(
    snapshot: ProjectSnapshot, body: bytes, version: PromptVersionRecord | None = None, *, answers: bool = True
) -> Decimal:
    """The most that a request costs which is `called_once`. `version` is the managed prompt that is put into it;
    without `answers` it is one for embeddings. Raises UnknownCostError."""
    fields = _decode(body)
    prompt = len(body) + _UNSEEN_TOKENS + (_bytes_of(version, fields) if version is not None else 0)
    own = str(fields.get("model") or "")
    if version is not None and version.model and own == AUTO:
        own = version.model
    if version is not None and version.max_tokens and not _given_limit(fields):
        fields["max_tokens"] = version.max_tokens
    total = Decimal(0)
    for name in (own, *(fields.get("models") or ())):
        found = [
            _cost(snapshot, candidate, prompt, _with_additions(snapshot, candidate, fields), answers=answers)
            for model in snapshot.models_of(name)
            for candidate in _serving(snapshot, model, fields)
        ]
        if not found:
            raise UnknownCostError(f"no enabled integration serves {name}: add one to `integrations`")
        total += max(found)
    return total


def _serving(snapshot: ProjectSnapshot, model: str, fields: Mapping[str, Any]) -> list[Candidate]:
    preferences = fields.get("provider") or {}
    allowed = allowed_names(snapshot, preferences.get("only"), preferences.get("ignore") or ())
    return candidates_of(snapshot, model, allowed)


def _with_additions(snapshot: ProjectSnapshot, candidate: Candidate, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    access = access_of(snapshot, candidate)
    return _decode(with_parameters(msgspec.json.encode(fields), access)) if access.sets_parameters else fields


def _cost(
    snapshot: ProjectSnapshot, candidate: Candidate, prompt: int, fields: Mapping[str, Any], *, answers: bool
) -> Decimal:
    name = f"{candidate.provider}/{candidate.upstream_model}"
    price = _price(snapshot, candidate)
    if price is None:
        raise UnknownCostError(f"the price of {name} is not known: set it by `PUT pricing/{name}`")
    limit = _limit(fields) if answers else 0
    if limit is None or _thinks(fields):
        longest = max_output_of(candidate.provider, candidate.upstream_model)
        limit = longest if limit is None or longest is None else max(limit, longest)
    if limit is None:
        raise UnknownCostError(f"how long {name} may answer is not known: set `max_tokens`")
    has_others = _has_others(fields)
    if has_others:
        # The bytes of pictures and files, which may be links, say nothing about their tokens.
        known = capabilities_of(candidate.provider, candidate.upstream_model)
        if known is None or known.context_window is None:
            raise UnknownCostError(f"how many tokens a file has for {name} is not known: ask by texts alone")
        prompt = max(prompt, known.context_window)
    rates = list(_rates(price, prompt, fields))
    classes = (*_INPUT, *_INPUT_OF_FILES) if has_others else _INPUT
    dearest_input = max(getattr(one, name) for one in rates for name in classes)
    dearest_output = max(getattr(one, name) for one in rates for name in _OUTPUT)
    tokens: Decimal = (dearest_input * prompt + dearest_output * limit) / _MILLION
    return (tokens + _fees(price, candidate, fields)).quantize(
        PLACES, rounding=ROUND_UP
    ) + 8 * PLACES  # Each class is rounded by itself.


def _price(snapshot: ProjectSnapshot, candidate: Candidate) -> Price | None:
    deployment = snapshot.deployments.get(candidate.deployment) if candidate.deployment else None
    own = deployment.prices if deployment is not None else None
    return (own or {}).get(candidate.upstream_model) or snapshot.price_of(candidate.provider, candidate.upstream_model)


def _rates(price: Price, prompt: int, fields: Mapping[str, Any]) -> Iterator[Rates]:
    if price.schedule is not None:
        for tier, steps in price.schedule.tiers.items():
            if tier in ("", fields.get("service_tier"), fields.get("speed")) or fields.get("service_tier") == "auto":
                yield from (rates for above, rates in steps if above < prompt)
        return
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    text, output = price.input, price.output
    yield Rates(text, output, read, write, write, text, text, read, output, output, output, is_plain=True)


def _fees(price: Price, candidate: Candidate, fields: Mapping[str, Any]) -> Decimal:
    fees = price.schedule.fees if price.schedule is not None else {}
    searches = _asks_for_more(fields) or any(word in candidate.upstream_model for word in _SEARCHING)
    found = fees.get("request", Decimal(0))
    return found + max(fees.get(name, Decimal(0)) for name in _SEARCHES) if searches else found


def _given_limit(fields: Mapping[str, Any]) -> Any:
    return fields.get("max_completion_tokens") or fields.get("max_tokens")


def _limit(fields: Mapping[str, Any]) -> int | None:
    allowed = _given_limit(fields)
    if not allowed:
        return None
    thinking = fields.get("thinking") or {}
    # Some providers raise a limit that is smaller than this.
    return max(int(allowed), 16) * int(fields.get("n") or 1) + int(thinking.get("budget_tokens") or 0)


def _thinks(fields: Mapping[str, Any]) -> bool:
    return bool(fields.get("thinking") or fields.get("reasoning_effort"))


def _has_others(fields: Mapping[str, Any]) -> bool:
    if any(tool.get("type", "function") != "function" for tool in fields.get("tools") or ()):
        return True
    return any(part.get("type") != "text" for part in _parts(fields.get("messages") or ()))


def _asks_for_more(fields: Mapping[str, Any]) -> bool:
    return _has_others(fields) or not fields.keys() <= _WITHOUT_SEARCH


def _parts(messages: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        yield from (part for part in content if isinstance(part, Mapping)) if isinstance(content, list) else ()


def _bytes_of(version: PromptVersionRecord, fields: Mapping[str, Any]) -> int:
    values = fields.get("prompt_variables") or {}
    try:
        messages = version.messages(values, tolerated=values.keys())
    except ApplicationError:
        messages = []  # Such a request is refused before any provider is called.
    return len(msgspec.json.encode(messages)) + len(version.tools or b"") + len(version.response_format or b"")
