"""Says of a request of the log whether a shadow may and can ask it again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from analytics.queries.shadowed import ShadowedRequest
from gateway.evaluations.evaluate import Evaluation
from gateway.evaluations.stored import read_stored
from gateway.guardrails.verdicts import is_masked
from gateway.playground.chat import FIELDS
from gateway.tables.shadow import SkipReason

_HIT = "hit"
# What changes no answer, or is said to the gateway alone.
_HARMLESS = frozenset(
    {"model", "stream", "stream_options", "metadata", "store", "service_tier", "safety_identifier"}
    | {"prompt_cache_key", "prompt_cache_retention"}
)
_DEFAULTS: Mapping[str, Any] = {"n": 1, "parallel_tool_calls": True, "logprobs": False}
# Tools of these types are executed by whoever asked; a provider executes all others by itself.
_CALLED_BY_CLIENTS = ("function", "custom")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Shadowed:
    """The fields of a request as its client sent them, and the message of the answer that it got."""

    fields: Mapping[str, Any]
    message: Mapping[str, Any]


def skipped_by_facts(row: ShadowedRequest | None) -> SkipReason | None:
    """Returns why the target may not answer the request; None for one whose texts decide."""
    if row is None:
        return SkipReason.NO_TEXT
    if row.is_no_store:
        return SkipReason.NO_STORE
    if is_masked(row.verdicts):
        return SkipReason.MASKED
    if row.cache_status == _HIT:
        return SkipReason.CACHED
    if row.has_header_variables:
        return SkipReason.NOT_REPEATABLE
    return None if row.prompt_preview else SkipReason.NO_TEXT


def read_shadowed(row: ShadowedRequest, request: str, response: str) -> Shadowed | SkipReason:
    """Returns what is compared, or why it cannot be."""
    stored = read_stored(request, response, finish_reason=row.finish_reason, completion_tokens=row.completion_tokens)
    if isinstance(stored, Evaluation):
        return SkipReason.NO_TEXT
    fields = _decode(request)
    if _has_provider_tools(fields.get("tools")):
        return SkipReason.PROVIDER_TOOLS
    if any(_counts(name, value) for name, value in fields.items()):
        return SkipReason.NOT_REPEATABLE
    return Shadowed(fields, stored.answer.message)


def _has_provider_tools(tools: Any) -> bool:
    """Returns whether any of the tools is executed by the provider. What is no tool at all is refused elsewhere."""
    given = tools if isinstance(tools, list) else []
    return any(isinstance(one, dict) and one.get("type", "function") not in _CALLED_BY_CLIENTS for one in given)


def _counts(name: str, value: Any) -> bool:
    """Returns whether a field may have changed the answer and is not asked again."""
    if name in FIELDS or name in _HARMLESS:
        return False
    return value is not None and value != _DEFAULTS.get(name)
