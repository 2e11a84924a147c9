"""Finds the time since which the newest N requests of a project were made."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client

_CACHE_SECONDS = 600.0
_MAX_CACHED = 1_000


@dataclass(frozen=True)
class _Hour:
    since: datetime


# The cached answers and their times (monotonic seconds), by project and count.
_cache: dict[tuple[UUID, int], tuple[datetime | None, float]] = {}


def recent_start_of_newest(project_id: UUID, count: int) -> datetime | None:
    """Returns `start_of_newest` over all requests, cached for ten minutes."""
    now = time.monotonic()
    answer, cached_at = _cache.get((project_id, count), (None, float("-inf")))
    if now - cached_at > _CACHE_SECONDS:
        answer = start_of_newest(project_id, count)
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        _cache[project_id, count] = (answer, now)
    return answer


def start_of_newest(
    project_id: UUID, count: int, *, start: datetime | None = None, end: datetime | None = None
) -> datetime | None:
    """Returns a full hour since which about `count` requests were made in the range, or None when there are fewer.

    A query of the newest rows that names a start reads no older parts of a table. The figures come from the hourly
    rollup, so the hour is a hint where to look first, and no exact bound.
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
    """
    rows = client.query(sql, params, row=_Hour, name="requests.newest")
    return rows[0].since if rows else None
