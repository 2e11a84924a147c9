"""How many different sessions had a request in a range of time?

A session has a row per day it went on, with its first and its last request of that day. So on the first day of a range
those belong to it whose last request came after its start, on the last day those whose first came before its end, and
all on the days between. Only a range without a whole day needs the requests themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.exact import TICK, Key, clamp, split, union


@dataclass(frozen=True)
class _Count:
    sessions: int


_DAY = timedelta(days=1)
# Sessions are counted by their hashes, which is half the work of counting their ids.
_ON = "SELECT t.session_hash AS hash FROM session_days AS t WHERE t.project_id = {project:UUID}"
_WHOLE_DAYS = f"{_ON} AND t.day >= {{first:Date}} AND t.day < {{until:Date}}"
_FIRST_DAY = f"{_ON} AND t.day = {{first_day:Date}} AND t.ended_at >= {{start:DateTime64(6, 'UTC')}}"
_LAST_DAY = f"{_ON} AND t.day = {{last_day:Date}} AND t.started_at < {{stop:DateTime64(6, 'UTC')}}"


def count_sessions(project_id: UUID, start: datetime, end: datetime) -> int:
    """Both ends included."""
    start, stop = clamp(start), clamp(end + TICK)
    [whole], _ = split(start, stop, [_DAY])
    source, params = _over_days(start, stop, *whole[0]) if whole else _from_requests(start, end)
    sql = f"SELECT uniqExact(f.hash) AS sessions FROM {source} AS f"  # noqa: S608 - fragments of this app
    return client.query(sql, {**params, "project": project_id}, row=_Count, name="sessions.distinct")[0].sessions


def _over_days(start: datetime, stop: datetime, first: datetime, until: datetime) -> tuple[str, dict[str, Any]]:
    """`first` up to `until` are the whole days from `start` up to `stop`."""
    selects, params = [_WHOLE_DAYS], {"first": first.date(), "until": until.date()}
    if start < first:
        selects.append(_FIRST_DAY)
        params |= {"first_day": start.date(), "start": start}
    if until < stop:
        selects.append(_LAST_DAY)
        params |= {"last_day": until.date(), "stop": stop}
    return f"({' UNION ALL '.join(selects)})", params


def _from_requests(start: datetime, end: datetime) -> tuple[str, dict[str, Any]]:
    keys = {"hash": Key("t.session_hash", "cityHash64(t.session_id)")}
    return union([], start, end, keys=keys, where_request="t.session_id != ''")
