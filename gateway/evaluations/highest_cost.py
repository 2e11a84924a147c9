"""The most that a request can cost, from its body and the prices that apply. No I/O.

No token is shorter than a byte, so that a prompt has at most as many tokens as bytes. They are counted at the dearest
rate of input, and the longest answer that the request or its model allows at the dearest of output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_UP, Decimal
from typing import Any

import msgspec
from msgspec import structs

from core.errors import ApplicationError
from gateway.pipeline.candidates import allowed_names, candidates_of
from gateway.protocol.wire import AUTO
from gateway.snapshot.project import ProjectSnapshot
from integrations.capabilities.lookup import capabilities_of, max_output_of
from integrations.pricing.cost import PLACES, Price
from integrations.pricing.terms import Rates
from integrations.registry import Candidate
from prompts.selectors import PromptVersionRecord

# Providers add instructions of their own to tools and schemas.
_UNSEEN_TOKENS = 1_000
_MILLION = Decimal(1_000_000)
_INPUT = ("input", "cache_read", "cache_write", "cache_write_1h", "input_audio", "input_image", "cache_read_audio")
_OUTPUT = ("output", "output_audio", "output_image", "reasoning")
_SEARCHES = ("search_low", "search_medium", "search_high")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def called_once(snapshot: ProjectSnapshot) -> ProjectSnapshot:
    """Returns the project's configuration without retries and failover, so that a request is one call of a provider for
    each model that it names."""
    once = structs.replace(snapshot.settings, retry_enabled=False, fallback_enabled=False)
    return replace(snapshot, settings=once, plain_attempts={}, plans={})


def highest_cost(
    snapshot: ProjectSnapshot, body: bytes, version: PromptVersionRecord | None = None, *, answers: bool = True
) -> Decimal | None:
    """Returns the most that a request costs which is `called_once`; None where a price, or the longest answer, is not
    known. `version` is the managed prompt that is put into it; without `answers` it is one for embeddings."""
    fields = _decode(body)
    prompt = len(body) + _UNSEEN_TOKENS + (_bytes_of(version, fields) if version is not None else 0)
    own = str(fields.get("model") or "")
    if version is not None and version.model and own == AUTO:
        own = version.model
    limit = _limit(fields, version) if answers else 0
    total = Decimal(0)
    for name in (own, *(fields.get("models") or ())):
        found = [
            _cost(snapshot, candidate, prompt, limit, fields)
            for model in snapshot.models_of(name)
            for candidate in _serving(snapshot, model, fields)
        ]
        known = [cost for cost in found if cost is not None]
        if not found or len(known) < len(found):
            return None
        total += max(known)
    return total


def _serving(snapshot: ProjectSnapshot, model: str, fields: Mapping[str, Any]) -> list[Candidate]:
    preferences = fields.get("provider") or {}
    allowed = allowed_names(snapshot, preferences.get("only"), preferences.get("ignore") or ())
    return candidates_of(snapshot, model, allowed)


def _cost(
    snapshot: ProjectSnapshot, candidate: Candidate, prompt: int, limit: int | None, fields: Mapping[str, Any]
) -> Decimal | None:
    price = _price(snapshot, candidate)
    if price is None:
        return None
    if limit is None or _thinks(fields):
        longest = max_output_of(candidate.provider, candidate.upstream_model)
        limit = longest if limit is None or longest is None else max(limit, longest)
    if limit is None:
        return None
    if _has_others(fields):
        # The bytes of pictures and files, which may be links, say nothing about their tokens.
        known = capabilities_of(candidate.provider, candidate.upstream_model)
        if known is None or known.context_window is None:
            return None
        prompt = max(prompt, known.context_window)
    rates = list(_rates(price))
    dearest_input = max(getattr(one, name) for one in rates for name in _INPUT)
    dearest_output = max(getattr(one, name) for one in rates for name in _OUTPUT)
    tokens: Decimal = (dearest_input * prompt + dearest_output * limit) / _MILLION
    return (tokens + _fees(price)).quantize(PLACES, rounding=ROUND_UP) + 8 * PLACES  # Each class is rounded by itself.


def _price(snapshot: ProjectSnapshot, candidate: Candidate) -> Price | None:
    deployment = snapshot.deployments.get(candidate.deployment) if candidate.deployment else None
    own = deployment.prices if deployment is not None else None
    return (own or {}).get(candidate.upstream_model) or snapshot.price_of(candidate.provider, candidate.upstream_model)


def _rates(price: Price) -> Iterator[Rates]:
    """Yields the rates of all tiers."""
    if price.schedule is not None:
        for steps in price.schedule.tiers.values():
            yield from (rates for _, rates in steps)
        return
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    text, output = price.input, price.output
    yield Rates(text, output, read, write, write, text, text, read, output, output, output, is_plain=True)


def _fees(price: Price) -> Decimal:
    """Returns the fee of a request with one search, which models that search by themselves make."""
    fees = price.schedule.fees if price.schedule is not None else {}
    return fees.get("request", Decimal(0)) + max(fees.get(name, Decimal(0)) for name in _SEARCHES)


def _limit(fields: Mapping[str, Any], version: PromptVersionRecord | None) -> int | None:
    """Returns the longest answer that the request allows; None where it says nothing."""
    given = fields.get("max_completion_tokens") or fields.get("max_tokens")
    allowed = given or (version.max_tokens if version is not None else None)
    if not allowed:
        return None
    thinking = fields.get("thinking") or {}
    # Some providers raise a limit that is smaller than this.
    return max(int(allowed), 16) * int(fields.get("n") or 1) + int(thinking.get("budget_tokens") or 0)


def _thinks(fields: Mapping[str, Any]) -> bool:
    """Returns whether a provider may raise the limit of the answer, to have room for its thoughts."""
    return bool(fields.get("thinking") or fields.get("reasoning_effort"))


def _has_others(fields: Mapping[str, Any]) -> bool:
    """Returns whether the request has more than texts and functions."""
    if any(tool.get("type", "function") != "function" for tool in fields.get("tools") or ()):
        return True
    return any(part.get("type") != "text" for part in _parts(fields.get("messages") or ()))


def _parts(messages: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        yield from (part for part in content if isinstance(part, Mapping)) if isinstance(content, list) else ()


def _bytes_of(version: PromptVersionRecord, fields: Mapping[str, Any]) -> int:
    """Returns the bytes that a version adds to a request."""
    values = fields.get("prompt_variables") or {}
    try:
        messages = version.messages(values, tolerated=values.keys())
    except ApplicationError:
        messages = []  # Such a request is refused before any provider is called.
    return len(msgspec.json.encode(messages)) + len(version.tools or b"") + len(version.response_format or b"")
