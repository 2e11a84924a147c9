from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from analytics.queries.operations import OF_OPERATION, stored_operations

# This is the last day of ClickHouse's type Date. Requests have days before 2050.
_LAST_DAY = date(2149, 6, 6)


@dataclass(frozen=True)
class SessionFilter:
    """The filter of sessions: `start` and `end` keep those with a request between them, both included.

    `name_pattern` is a LIKE pattern of the id; `user_id` keeps sessions with any request of that user, `operation`
    those with any request of that operation, at any time.
    """

    user_id: str = ""
    operation: str = ""
    name_pattern: str = ""
    start: datetime | None = None
    end: datetime | None = None

    @property
    def within_a_day(self) -> bool:
        return bool(self.start and self.end and self.start.date() == self.end.date())


_OF_PROJECT = "s.project_id = {project:UUID}"
_OF_USER = (
    "s.session_hash IN (SELECT u.session_hash FROM user_sessions AS u"
    " WHERE u.project_id = {project:UUID} AND u.user_id = {user:String})"
)
_WITH_OPERATION = (
    "s.session_hash IN (SELECT o.session_hash FROM session_days AS o"
    f" WHERE o.project_id = {{project:UUID}} AND o.{OF_OPERATION})"
)
# A row covers one day, so only a range within one day can lie between a row's first and last request. Then the requests
# themselves decide if one is in the range.
_IN_RANGE_OF_A_DAY = (
    "(s.started_at >= {start:DateTime64(6, 'UTC')} OR s.ended_at <= {end:DateTime64(6, 'UTC')}"
    " OR s.session_hash IN (SELECT cityHash64(r.session_id) FROM requests AS r"
    " WHERE r.project_id = {project:UUID} AND r.session_id != ''"
    " AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}))"
)


_LATER = "s.day >= {end_day:Date} AND s.started_at > {end:DateTime64(6, 'UTC')}"


@dataclass(frozen=True)
class Conditions:
    """SQL conditions over rows `s`, with their parameters.

    A session matches if one of its rows satisfies both `of_session` and `in_range`. The end of a matching session is in
    such a row or in a `later` one, which began after the range; `later` is empty for a range without an end. All of
    these rows satisfy `since`.
    """

    of_session: str
    in_range: str
    later: str
    since: str
    params: dict[str, Any]

    @property
    def matching(self) -> str:
        return f"{self.of_session} AND {self.in_range}"


def conditions_of(project_id: UUID, filters: SessionFilter) -> Conditions:
    of_session, params = [_OF_PROJECT], {"project": project_id, **_times(filters)}
    if filters.name_pattern:
        of_session.append("s.session_id LIKE {pattern:String}")
        params["pattern"] = filters.name_pattern
    if filters.user_id:
        of_session.append(_OF_USER)
        params["user"] = filters.user_id
    if filters.operation:
        of_session.append(_WITH_OPERATION)
        params["operation"] = stored_operations(filters.operation)
    return Conditions(
        " AND ".join(of_session),
        " AND ".join(_in_range(filters) or ["1"]),
        _LATER if filters.end else "",
        "s.day >= {start_day:Date}" if filters.start else "1",
        params,
    )


def _in_range(filters: SessionFilter) -> list[str]:
    found = []
    if filters.start:
        found += ["s.day >= {start_day:Date}", "s.ended_at >= {start:DateTime64(6, 'UTC')}"]
    if filters.end:
        found += ["s.day <= {end_day:Date}", "s.started_at <= {end:DateTime64(6, 'UTC')}"]
    if filters.within_a_day:
        found.append(_IN_RANGE_OF_A_DAY)
    return found


def _times(filters: SessionFilter) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if filters.start:
        params.update(start=filters.start, start_day=_day_of(filters.start))
    if filters.end:
        params.update(end=filters.end, end_day=_day_of(filters.end))
    return params


def _day_of(moment: datetime) -> date:
    return min(moment.date(), _LAST_DAY)
