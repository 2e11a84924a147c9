from __future__ import annotations

import json
from operator import attrgetter
from typing import Any, TypedDict, cast
from uuid import UUID

import msgspec

from analytics.queries.requests import Payload, RequestDetailRow, RequestRow
from analytics.request_log.record import RequestEntry, RequestError
from analytics.wire.attempts import AttemptEntry, attempt_entries
from analytics.wire.feedback import FeedbackEntry, ScoreEntry
from analytics.wire.sentences import sentence


class RequestDetail(RequestEntry):
    summary: str
    attempt_timeline: list[AttemptEntry]
    attributes: dict[str, Any] | None
    content_logged: bool
    request: Any
    response: Any
    scores: list[ScoreEntry]
    feedback: list[FeedbackEntry]


# The names of the wire whose column has another one, or that are made of several.
_SOURCES = {
    "created_at": "ts", "native": "is_native", "stream": "is_stream", "cache": "cache_status", "error": "error_code",
    "total_tokens": "prompt_tokens",
}  # fmt: skip
_read = attrgetter(*(_SOURCES.get(name, name) for name in RequestEntry.__annotations__))
_EMPTY_IS_NULL = ("api_key_id", "team_id", "cost_source", "ttft_ms", "prompt_version", "variant")


def request_entry(row: RequestRow) -> RequestEntry:
    entry: dict[str, Any] = dict(zip(RequestEntry.__annotations__, _read(row), strict=True))
    for name in _EMPTY_IS_NULL:
        entry[name] = entry[name] or None
    entry["error"] = _error(row)
    entry["total_tokens"] = row.prompt_tokens + row.completion_tokens
    entry["cost_usd"] = float(row.cost_usd) if row.cost_known else None
    entry["prompt_config_id"] = _id(row.prompt_config_id)
    entry["rollout_id"] = _id(row.rollout_id)
    entry["attempts"] = msgspec.json.decode(row.attempts) if row.attempts else []
    return cast(RequestEntry, entry)


def request_detail(
    row: RequestDetailRow, payload: Payload | None, scores: list[ScoreEntry], feedback: list[FeedbackEntry]
) -> RequestDetail:
    """`content_logged` distinguishes an empty body from one that was not logged or is past its retention."""
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
        "feedback": feedback,
    }


def _attribute(text: str) -> Any:
    return stored_body(text) if text[:1] in ("[", "{") else text


def stored_body(text: str) -> Any:
    """JSON if it can be encoded again, else text; None if empty.

    Clients and providers do send NaN, lone surrogates and numbers of thousands of digits.
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


class RequestNeighbours(TypedDict):
    """`previous` and `next` are of the same session; without a `session_id` they are of the whole log."""

    session_id: str | None
    previous: UUID | None
    next: UUID | None
