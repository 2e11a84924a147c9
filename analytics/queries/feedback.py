"""Summarizes feedback by day, and by model, prompt version or arm of the requests that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client

# The columns by which each grouping separates feedback. The columns of other groupings then have
# one empty value.
GROUPINGS: Mapping[str, Sequence[str]] = {
    "none": (),
    "model": ("provider", "model"),
    "prompt_version": ("prompt_config_id", "prompt_version"),
    "variant": ("rollout_id", "variant"),
}

_EMPTY = {
    "provider": "''",
    "model": "''",
    "prompt_config_id": "toUUID('00000000-0000-0000-0000-000000000000')",
    "prompt_version": "toUInt32(0)",
    "rollout_id": "toUUID('00000000-0000-0000-0000-000000000000')",
    "variant": "''",
}
_KEYS = ", ".join(_EMPTY)


@dataclass(frozen=True)
class FeedbackSums:
    """The sums of some feedback. Some pieces have texts, and some say that an answer was `edited`; `requests` are those
    that it names; `by_score` counts the scores 1 to 5, and `mean` is None when there was none of them."""

    feedback: int
    texts: int
    edited: int
    sessions: int
    requests: int
    by_score: Sequence[int]

    @property
    def mean(self) -> float | None:
        scored = sum(self.by_score)
        return sum(score * count for score, count in enumerate(self.by_score, start=1)) / scored if scored else None


@dataclass(frozen=True)
class FeedbackDayRow(FeedbackSums):
    """The feedback of a UTC day."""

    day: date


@dataclass(frozen=True)
class FeedbackGroupRow(FeedbackSums):
    """The feedback of a group; `groups` is the number of all groups. What the grouping does not separate by, and what
    the request has none of, is empty."""

    provider: str
    model: str
    prompt_config_id: UUID
    prompt_version: int
    rollout_id: UUID
    variant: str
    groups: int


@dataclass(frozen=True)
class _Count:
    count: int


_MATCHING = """
FROM feedback AS f FINAL
WHERE f.project_id = {project:UUID} AND f.ts >= {start:DateTime64(6, 'UTC')} AND f.ts <= {end:DateTime64(6, 'UTC')}
"""
_SUMS = """
    count() AS feedback, countIf(f.has_text) AS texts, countIf(f.edited) AS edited,
    uniqExact(f.session_id) AS sessions,
    uniqExactIf(f.request_id, f.request_known) AS requests,
    [countIf(f.score = 1), countIf(f.score = 2), countIf(f.score = 3), countIf(f.score = 4), countIf(f.score = 5)]
        AS by_score
"""
_DAYS = f"""
SELECT toDate(f.ts, 'UTC') AS day, {_SUMS}
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


def feedback_groups(
    project_id: UUID, start: datetime, end: datetime, group_by: str, *, limit: int, offset: int
) -> tuple[int, list[FeedbackGroupRow]]:
    """Returns the number of groups, and a page of them in their order, of the feedback that names a request which the
    store knows. `group_by` is one of GROUPINGS."""
    kept = GROUPINGS[group_by]
    columns = ", ".join(
        f"f.{name} AS {name}" if name in kept else f"{empty} AS {name}" for name, empty in _EMPTY.items()
    )
    grouped = f"{_MATCHING} AND f.request_known GROUP BY {_KEYS}"
    params: dict[str, Any] = {"project": project_id, "start": start, "end": end}
    sql = (
        f"SELECT {columns}, {_SUMS}, count() OVER () AS groups {grouped}"
        f" ORDER BY {_KEYS} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
    )
    page = {**params, "limit": limit, "offset": offset}
    groups = client.query(sql, page, row=FeedbackGroupRow, name="feedback.groups")
    if groups or not offset:
        return sum(group.groups for group in groups[:1]), groups
    count = f"SELECT count() AS count FROM (SELECT {columns} {grouped})"
    return client.query(count, params, row=_Count, name="feedback.count")[0].count, []
