"""Summarizes the feedback on sessions by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class FeedbackDayRow:
    """The feedback of a UTC day. `by_score` counts the scores 1 to 5; `mean` is None when there was none of them."""

    day: date
    feedback: int
    texts: int
    sessions: int
    by_score: Sequence[int]

    @property
    def mean(self) -> float | None:
        scored = sum(self.by_score)
        return sum(score * count for score, count in enumerate(self.by_score, start=1)) / scored if scored else None


@dataclass(frozen=True)
class _Count:
    count: int


_MATCHING = """
FROM feedback AS f FINAL
WHERE f.project_id = {project:UUID} AND f.ts >= {start:DateTime64(6, 'UTC')} AND f.ts <= {end:DateTime64(6, 'UTC')}
"""
_DAYS = f"""
SELECT
    toDate(f.ts, 'UTC') AS day, count() AS feedback, countIf(f.has_text) AS texts, uniqExact(f.session_id) AS sessions,
    [countIf(f.score = 1), countIf(f.score = 2), countIf(f.score = 3), countIf(f.score = 4), countIf(f.score = 5)]
        AS by_score
{_MATCHING} GROUP BY day ORDER BY day LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}
"""
_COUNT = f"SELECT uniqExact(toDate(f.ts, 'UTC')) AS count {_MATCHING}"


def feedback_days(
    project_id: UUID, start: datetime, end: datetime, *, limit: int, offset: int
) -> tuple[int, list[FeedbackDayRow]]:
    """Returns the number of days with feedback, and a page of them, the earliest first."""
    params: dict[str, Any] = {"project": project_id, "start": start, "end": end}
    page = {**params, "limit": limit, "offset": offset}
    days = client.query(_DAYS, page, row=FeedbackDayRow, name="feedback.days")
    if len(days) < limit and (days or not offset):
        return offset + len(days), days
    return client.query(_COUNT, params, row=_Count, name="feedback.count")[0].count, days
