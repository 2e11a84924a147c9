"""The JSON of requests."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

import msgspec

from analytics.queries.requests import Payload, RequestDetailRow, RequestRow
from analytics.wire.attempts import AttemptEntry, attempt_entries
from analytics.wire.scores import ScoreEntry
from analytics.wire.sentences import sentence


class RequestError(TypedDict):
    type: str
    code: str
    message: str | None


class RequestEntry(TypedDict):
    request_id: UUID
    created_at: datetime
    session_id: str
    user_id: str
    api_key_id: int | None
    source: str
    operation: str
    native: bool
    outcome: str
    status_code: int
    provider: str
    model: str
    requested_model: str
    error: RequestError | None
    finish_reason: str
    stream: bool
    cache: str
    retry_count: int
    fallback_used: bool
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    tokens_estimated: bool
    cost_usd: float | None
    cost_source: str | None
    latency_ms: int
    ttft_ms: int | None
    prompt_config_id: UUID | None
    prompt_version: int | None
    rollout_id: UUID | None
    variant: str | None
    contract_violation: bool
    attempts: list[dict[str, Any]]
    prompt_preview: str | None
    completion_preview: str | None


class RequestDetail(RequestEntry):
    summary: str
    attempt_timeline: list[AttemptEntry]
    attributes: dict[str, Any] | None
    content_logged: bool
    request: Any
    response: Any
    scores: list[ScoreEntry]


def request_entry(row: RequestRow) -> RequestEntry:
    return {
        "request_id": row.request_id,
        "created_at": row.ts,
        "session_id": row.session_id,
        "user_id": row.user_id,
        "api_key_id": row.api_key_id or None,
        "source": row.source,
        "operation": row.operation,
        "native": row.is_native,
        "outcome": row.outcome,
        "status_code": row.status_code,
        "provider": row.provider,
        "model": row.model,
        "requested_model": row.requested_model,
        "error": _error(row),
        "finish_reason": row.finish_reason,
        "stream": row.is_stream,
        "cache": row.cache_status,
        "retry_count": row.retry_count,
        "fallback_used": row.fallback_used,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "tokens_estimated": row.tokens_estimated,
        "cost_usd": float(row.cost_usd) if row.cost_known else None,
        "cost_source": row.cost_source or None,
        "latency_ms": row.latency_ms,
        "ttft_ms": row.ttft_ms or None,
        "prompt_config_id": _id(row.prompt_config_id),
        "prompt_version": row.prompt_version or None,
        "rollout_id": _id(row.rollout_id),
        "variant": row.variant or None,
        "contract_violation": row.contract_violation,
        "attempts": msgspec.json.decode(row.attempts) if row.attempts else [],
        "prompt_preview": row.prompt_preview,
        "completion_preview": row.completion_preview,
    }


def request_detail(row: RequestDetailRow, payload: Payload | None, scores: list[ScoreEntry]) -> RequestDetail:
    """Returns one request with its content. `content_logged` distinguishes an empty body from one that was not logged
    or is past its retention."""
    attempts = attempt_entries(row)
    return {
        **request_entry(row),
        "summary": sentence(row, attempts),
        "attempt_timeline": attempts,
        "attributes": {name: _attribute(value) for name, value in row.attributes.items()},
        "content_logged": payload is not None,
        "request": stored_body(payload.request) if payload else None,
        "response": stored_body(payload.response) if payload else None,
        "scores": scores,
    }


def _attribute(text: str) -> Any:
    """Returns an attribute that holds a JSON list or object as such, and any other as its text."""
    return stored_body(text) if text[:1] in ("[", "{") else text


def stored_body(text: str) -> Any:
    """Returns a stored body as JSON when it can be encoded again, else as text; None when it is empty.

    Clients and providers do send NaN, halves of surrogate pairs and numbers of thousands of digits.
    """
    if not text:
        return None
    try:
        value = json.loads(text, parse_constant=str)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return text
    return value


def _error(row: RequestRow) -> RequestError | None:
    if not row.error_type and not row.error_code:
        return None
    return {"type": row.error_type, "code": row.error_code, "message": row.error_message}


def _id(value: UUID) -> UUID | None:
    return value if value.int else None
