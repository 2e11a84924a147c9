from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from analytics.queries.operations import stored_operations
from analytics.request_log.record import CLIENT_REQUEST_ID
from core.keys.services import METADATA_PREFIX

Texts = str | tuple[str, ...]
"""A value or several, of which a request has to have one; empty for no filter."""


class RequestSignal(StrEnum):
    CONTRACT = "contract"
    TRUNCATED = "truncated"
    FALLBACK = "fallback"
    EMPTY = "empty"


@dataclass(frozen=True)
class RequestFilter:
    """The filter of a list of requests: an empty text or None matches all, and all bounds are inclusive.

    `metadata` are texts `name:value`: a request must have one of the values given for each name. `excluded` are values
    by field, none of which a request may have.
    """

    session_id: Texts = ""
    user_id: Texts = ""
    outcome: Texts = ""
    status_code: int | tuple[int, ...] | None = None
    source: Texts = ""
    operation: Texts = ""
    provider: Texts = ""
    model: Texts = ""
    requested_model: Texts = ""
    error_type: Texts = ""
    error_code: Texts = ""
    prompt_config_id: UUID | tuple[UUID, ...] | None = None
    prompt_version: int | tuple[int, ...] | None = None
    rollout_id: UUID | tuple[UUID, ...] | None = None
    variant: Texts = ""
    start: datetime | None = None
    end: datetime | None = None
    min_latency_ms: int | None = None
    max_latency_ms: int | None = None
    min_cost_usd: Decimal | None = None
    max_cost_usd: Decimal | None = None
    client_request_id: Texts = ""
    api_key_id: int | tuple[int, ...] | None = None
    team_id: int | tuple[int, ...] | None = None
    min_ttft_ms: int | None = None
    max_ttft_ms: int | None = None
    deployment: Texts = ""
    language: Texts = ""
    signal: Texts = ""
    metadata: Texts = ""
    excluded: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)


_NAMES = (
    "session_id", "user_id", "outcome", "status_code", "source", "operation", "provider", "model", "requested_model",
    "error_type", "error_code", "prompt_config_id", "prompt_version", "rollout_id", "variant", "client_request_id",
    "api_key_id", "team_id", "deployment", "language",
)  # fmt: skip
_TYPES: Mapping[str, str] = {
    "status_code": "UInt16", "prompt_config_id": "UUID", "prompt_version": "UInt32", "rollout_id": "UUID",
    "api_key_id": "UInt64", "team_id": "UInt64",
}  # fmt: skip
_EXPRESSIONS: Mapping[str, str] = {
    "client_request_id": f"attributes['{CLIENT_REQUEST_ID}']",
    # A deployment without a name of its own is called like its provider.
    "deployment": "if(deployment = '', provider, deployment)",
}
# The expression of each column of which a request has one value, and its type in ClickHouse.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    name: (_EXPRESSIONS.get(name, name), _TYPES.get(name, "String")) for name in _NAMES
}
# `cost_usd` of a request whose price is unknown is 0, and so is `ttft_ms` of one that was not streamed.
_BOUNDS: Mapping[str, str] = {
    "start": "ts >= {start:DateTime64(6, 'UTC')}",
    "end": "ts <= {end:DateTime64(6, 'UTC')}",
    "min_latency_ms": "latency_ms >= {min_latency_ms:UInt32}",
    "max_latency_ms": "latency_ms <= {max_latency_ms:UInt32}",
    "min_cost_usd": "cost_known AND cost_usd >= {min_cost_usd:Decimal(18, 10)}",
    "max_cost_usd": "cost_known AND cost_usd <= {max_cost_usd:Decimal(18, 10)}",
    "min_ttft_ms": "ttft_ms > 0 AND ttft_ms >= {min_ttft_ms:UInt32}",
    "max_ttft_ms": "ttft_ms > 0 AND ttft_ms <= {max_ttft_ms:UInt32}",
}
SIGNALS: Mapping[str, str] = {
    RequestSignal.CONTRACT: "(outcome = 'success' AND contract_violation)",
    RequestSignal.TRUNCATED: "(outcome = 'success' AND finish_reason = 'length')",
    RequestSignal.FALLBACK: "(outcome = 'success' AND other_used)",
    RequestSignal.EMPTY: "(outcome = 'success' AND empty_answer)",
}
"""The conditions of requests with a signal."""

EXCLUDABLE = (*_COLUMNS, "signal", "metadata")
"""The fields that may have several values, and those that a request must not have."""


@dataclass(frozen=True)
class Conditions:
    conditions: Mapping[str, str]
    values: Mapping[str, Any]


def conditions_of(filters: RequestFilter) -> Conditions:
    conditions: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, condition in _BOUNDS.items():
        if (value := getattr(filters, name)) is not None:
            conditions[name], values[name] = condition, value
    for name in EXCLUDABLE:
        parts = [*_among(name, values_of(filters, name)), *_outside(name, filters.excluded.get(name, ()))]
        if parts:
            conditions[name] = " AND ".join(condition for condition, _ in parts)
            values |= {key: value for _, found in parts for key, value in found.items()}
    return Conditions(conditions, values)


def values_of(filters: RequestFilter, name: str) -> tuple[Any, ...]:
    given = getattr(filters, name)
    return given if isinstance(given, tuple) else () if given in ("", None) else (given,)


_Condition = tuple[str, Mapping[str, Any]]
"""A condition with its parameters."""


def _among(name: str, wanted: Sequence[Any]) -> Iterator[_Condition]:
    if not wanted:
        return
    if name == "metadata":
        yield from _of_metadata(wanted, "IN", name)
    elif name == "signal":
        yield f"({' OR '.join(SIGNALS[signal] for signal in wanted)})", {}
    else:
        column, kind = _COLUMNS[name]
        stored = _stored(name, wanted)
        # One value is compared as such, by which the store finds the marks of a key.
        if len(stored) == 1:
            yield f"{column} = {{{name}:{kind}}}", {name: stored[0]}
        else:
            yield f"{column} IN {{{name}:Array({kind})}}", {name: stored}


def _outside(name: str, unwanted: Sequence[Any]) -> Iterator[_Condition]:
    if not unwanted:
        return
    if name == "metadata":
        yield from _of_metadata(unwanted, "NOT IN", f"not_{name}")
    elif name == "signal":
        yield f"NOT ({' OR '.join(SIGNALS[signal] for signal in unwanted)})", {}
    else:
        column, kind = _COLUMNS[name]
        yield f"{column} NOT IN {{not_{name}:Array({kind})}}", {f"not_{name}": _stored(name, unwanted)}


def _of_metadata(given: Sequence[str], operator: str, prefix: str) -> Iterator[_Condition]:
    by_name: dict[str, list[str]] = {}
    for text in given:
        name, _, value = text.partition(":")
        by_name.setdefault(name, []).append(value)
    for place, (name, values) in enumerate(by_name.items()):
        key, wanted = f"{prefix}_name_{place}", f"{prefix}_{place}"
        condition = f"attributes[{{{key}:String}}] {operator} {{{wanted}:Array(String)}}"
        yield condition, {key: f"{METADATA_PREFIX}{name}", wanted: values}


def _stored(name: str, values: Sequence[Any]) -> list[Any]:
    if name != "operation":
        return list(values)
    return [stored for value in values for stored in stored_operations(value)]
