"""The JSON of what guardrails found."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict
from uuid import UUID

from analytics.queries.guardrails import VerdictCountRow, VerdictRow

# The actions that say that something was found; the others say that an answer was judged, or texts were marked.
FINDINGS = ("blocked", "flagged", "masked")


class VerdictCounts(TypedDict):
    """The requests by action; `found_count` is the sum of those that were blocked, flagged or masked."""

    guardrail: str
    stage: str
    found_count: int
    blocked_count: int
    flagged_count: int
    masked_count: int
    changed_count: int
    passed_count: int
    skipped_count: int


class GuardrailFigures(VerdictCounts):
    last_seen: datetime


class GuardrailInterval(VerdictCounts):
    start: datetime


class GuardrailVerdictEntry(TypedDict):
    request_id: UUID
    created_at: datetime
    session_id: str
    user_id: str
    provider: str
    model: str
    outcome: str
    status_code: int
    error_code: str
    guardrail: str
    stage: str
    action: str
    detail: str | None
    score: float


class GuardrailRequests(TypedDict):
    start_date: datetime
    end_date: datetime
    results: list[GuardrailVerdictEntry]


def figures(rows: Iterable[VerdictCountRow]) -> list[GuardrailFigures]:
    """Returns the figures by guardrail and stage, the most findings first."""
    last: dict[tuple[str, str], datetime] = {}
    grouped: dict[tuple[str, str], VerdictCounts] = {}
    for row in rows:
        key = row.guardrail, row.stage
        _add(grouped.setdefault(key, _none(*key)), row)
        last[key] = max(row.last_at, last.get(key, row.last_at))
    entries: list[GuardrailFigures] = [{**counts, "last_seen": last[key]} for key, counts in grouped.items()]
    return sorted(entries, key=lambda entry: (-entry["found_count"], entry["guardrail"], entry["stage"]))


def intervals(rows: Iterable[VerdictCountRow]) -> list[GuardrailInterval]:
    """Returns the counts by interval, guardrail and stage, in the order of the rows."""
    grouped: dict[tuple[datetime, str, str], VerdictCounts] = {}
    for row in rows:
        key = row.start, row.guardrail, row.stage
        _add(grouped.setdefault(key, _none(row.guardrail, row.stage)), row)
    return [{**counts, "start": start} for (start, _, _), counts in grouped.items()]


def verdict(row: VerdictRow) -> GuardrailVerdictEntry:
    return {
        "request_id": row.request_id,
        "created_at": row.ts,
        "session_id": row.session_id,
        "user_id": row.user_id,
        "provider": row.provider,
        "model": row.model,
        "outcome": row.outcome,
        "status_code": row.status_code,
        "error_code": row.error_code,
        "guardrail": row.guardrail,
        "stage": row.stage,
        "action": row.action,
        "detail": row.detail,
        "score": 1.0 if row.score is None else row.score,
    }


def _none(guardrail: str, stage: str) -> VerdictCounts:
    return {
        "guardrail": guardrail,
        "stage": stage,
        "found_count": 0,
        "blocked_count": 0,
        "flagged_count": 0,
        "masked_count": 0,
        "changed_count": 0,
        "passed_count": 0,
        "skipped_count": 0,
    }


def _add(counts: VerdictCounts, row: VerdictCountRow) -> None:
    """Adds the row's requests to its action's count. An action of a later release has no count."""
    name = f"{row.action}_count"
    if name in counts and name != "found_count":
        counts[name] += row.requests  # type: ignore[literal-required]  # a name of VerdictCounts, as just tested
    if row.action in FINDINGS:
        counts["found_count"] += row.requests
