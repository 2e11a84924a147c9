"""Times are in milliseconds from the request's arrival."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from analytics.queries.requests import RequestRow
from analytics.request_log.record import AttemptRecord
from core.wire.shown import shown_as

_decode = msgspec.json.Decoder(list[AttemptRecord]).decode


class AttemptEntry(TypedDict):
    """One call to one provider. `wait_ms` passed since the attempt before it ended, or since the request arrived;
    `first_token_ms` is null for a call that gave no output or was not streamed. `status` is the provider's HTTP status,
    null when there was none; `error` says why the call failed, and is null for the one that answered."""

    number: int
    provider: str
    deployment: str
    model: str
    started_ms: float
    wait_ms: float
    first_token_ms: int | None
    ended_ms: float
    is_answer: bool
    status: int | None
    error: str | None
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


def attempt_entries(row: RequestRow) -> list[AttemptEntry]:
    try:
        attempts = _decode(row.attempts) if row.attempts else []
    except msgspec.DecodeError:
        # Rows of other writers may hold anything; the request itself is shown all the same.
        return []
    entries: list[AttemptEntry] = []
    for number, attempt in enumerate(attempts, start=1):
        before = entries[-1]["ended_ms"] if entries else 0.0
        entries.append(_entry(row, number, attempt, before, is_last=number == len(attempts)))
    return entries


def _entry(row: RequestRow, number: int, attempt: AttemptRecord, before: float, *, is_last: bool) -> AttemptEntry:
    started = attempt.offset_us / 1000 or before
    is_answer = is_last and (not attempt.error or row.ttft_ms > 0)
    # The latency of an attempt ends with its first output; a stream goes on for as long as its request.
    streamed = is_answer and row.is_stream
    ended = max(row.latency_ms, started) if streamed else started + attempt.latency_ms
    return shown_as(
        AttemptEntry,
        attempt,
        number=number,
        deployment=attempt.deployment or attempt.provider,
        started_ms=started,
        wait_ms=max(round(started - before, 3), 0),
        first_token_ms=row.ttft_ms or None if streamed else None,
        ended_ms=ended,
        is_answer=is_answer and not attempt.error,
        status=attempt.status or None,
        error=attempt.error or None,
        cost_usd=_cost(attempt.cost_usd),
    )


def _cost(text: str) -> Any:
    try:
        return float(text) if text else None
    except ValueError:
        return None
