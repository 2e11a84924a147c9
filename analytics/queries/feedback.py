from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.groupings import columns_of, row_of


@dataclass(frozen=True)
class FeedbackFigures:
    """The figures of a UTC day, or with a grouping those of a group, whose `date` is null and which has the fields of
    its group beside these."""

    date: date | None
    count: int
    text_count: int
    edited_count: int
    session_count: int
    request_count: int
    mean_score: float | None
    scores: dict[str, int]


_MATCHING = """
FROM feedback AS t FINAL
WHERE t.project_id = {project:UUID} AND t.ts >= {start:DateTime64(6, 'UTC')} AND t.ts <= {end:DateTime64(6, 'UTC')}
"""
_SUMS = f"""
    count() AS count, countIf(t.has_text) AS text_count, countIf(t.edited) AS edited_count,
    uniqExact(t.session_id) AS session_count, uniqExactIf(t.request_id, t.request_known) AS request_count,
    if(countIf(t.score BETWEEN 1 AND 5) = 0, NULL, avgIf(t.score, t.score BETWEEN 1 AND 5)) AS mean_score,
    map({", ".join(f"'{score}', countIf(t.score = {score})" for score in range(1, 6))}) AS scores
"""


def feedback_figures(
    project_id: UUID, start: datetime, end: datetime, group_by: str, *, limit: int, offset: int
) -> tuple[int, Sequence[FeedbackFigures]]:
    """Returns the number of days with feedback, and a page of them, the earliest first. With a grouping other than
    `none` it returns groups in their order, of the feedback that names a request which the store knows. `group_by` is
    one of GROUPINGS."""
    if group_by == "none":
        name, columns, grouped, matching = "days", "toDate(t.ts, 'UTC') AS date,", "date", _MATCHING
        order = grouped
    else:
        columns, grouped, order = columns_of(group_by)
        name, columns, matching = "groups", f"{columns} NULL AS date,", f"{_MATCHING} AND t.request_known"
    params: dict[str, Any] = {"project": project_id, "start": start, "end": end}
    sql = (
        f"SELECT {columns} {_SUMS} {matching} GROUP BY {grouped}"
        f" ORDER BY {order} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
    )
    page = {**params, "limit": limit, "offset": offset}
    rows = client.query(sql, page, row=row_of(FeedbackFigures, group_by), name=f"feedback.{name}")
    if len(rows) < limit and (rows or not offset):
        return offset + len(rows), rows
    count = f"SELECT count() FROM (SELECT {columns} 1 {matching} GROUP BY {grouped})"
    return client.query(count, params, row=int, name="feedback.count")[0], rows
