"""The JSON of a session's transcript: of each request only the turns that no earlier request carried."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import TypedDict
from uuid import UUID

from analytics.conversation.identity import SeenTurns
from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.queries.bodies import BodiesRow
from analytics.queries.requests import RequestRow
from analytics.wire.conversations import ConversationTurn, TextBounds, conversation_turns, skip_images

_MAX_TURNS = 100


class TranscriptEntry(TypedDict):
    """`turns` are those of the request that no earlier one of the session carried, `known_turns` counts the others.
    `note` says why there are none: `not_logged` or `too_large`; it is null for a request whose bodies were read."""

    request_id: UUID
    created_at: datetime
    operation: str
    provider: str
    model: str
    outcome: str
    status_code: int
    error_code: str | None
    latency_ms: int
    total_tokens: int
    cost_usd: float | None
    known_turns: int
    omitted_turns: int
    turns: list[ConversationTurn]
    answer: list[ConversationTurn]
    note: str | None


class SessionTranscript(TypedDict):
    results: list[TranscriptEntry]
    next_cursor: str | None


def transcript_entry(row: RequestRow, bodies: BodiesRow | None, seen: SeenTurns, bounds: TextBounds) -> TranscriptEntry:
    """Returns a request with its new turns, which become known to `seen`."""
    turns = read_request(bodies.request).turns if bodies else ()
    answer = read_response(bodies.response) if bodies else ()
    known = seen.add(turns, answer)
    images = count()
    skip_images(turns[:known], images)
    new = turns[known:]
    first = max(len(new) - _MAX_TURNS, 0)
    skip_images(new[:first], images)
    return {
        "request_id": row.request_id,
        "created_at": row.ts,
        "operation": row.operation,
        "provider": row.provider,
        "model": row.model,
        "outcome": row.outcome,
        "status_code": row.status_code,
        "error_code": row.error_code or None,
        "latency_ms": row.latency_ms,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "cost_usd": float(row.cost_usd) if row.cost_known else None,
        "known_turns": known,
        "omitted_turns": first,
        "turns": conversation_turns(new[first:], bounds, images),
        "answer": conversation_turns(answer[:_MAX_TURNS], bounds, images),
        "note": _note(bodies),
    }


def _note(bodies: BodiesRow | None) -> str | None:
    if bodies is None:
        return "not_logged"
    return "too_large" if bodies.is_left_out else None
