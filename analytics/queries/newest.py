"""Since when were the newest so many requests of a project made?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class _Hour:
    since: datetime


def start_of_newest(
    project_id: UUID, count: int, *, start: datetime | None = None, end: datetime | None = None
) -> datetime | None:
    """A full hour since when about `count` requests were made between `start` and `end`; None: there are not as many.

    A question about the newest rows that names a start leaves older parts of a table alone. Figures come from the
    hourly rollup, so an answer is good for choosing where to look first, and not for saying what is there.
    """
    conditions = ["project_id = {project:UUID}"]
    params: dict[str, Any] = {"project": project_id, "count": count}
    if start:
        conditions.append("hour >= {start:DateTime64(6, 'UTC')}")
        params["start"] = start
    if end:
        conditions.append("hour <= {end:DateTime64(6, 'UTC')}")
        params["end"] = end
    sql = f"""
        SELECT toDateTime64(hour, 0, 'UTC') AS since FROM (
            SELECT hour, sum(sum(h.requests)) OVER (ORDER BY hour DESC) AS newer
            FROM requests_hourly AS h WHERE {" AND ".join(conditions)} GROUP BY hour
        ) WHERE newer >= {{count:UInt64}} ORDER BY hour DESC LIMIT 1
    """  # noqa: S608 - fragments of this file
    rows = client.query(sql, params, row=_Hour, name="requests.newest")
    return rows[0].since if rows else None
