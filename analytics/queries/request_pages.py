"""Lists requests in any order, a page at a time behind or before a request of the list.

A page of a list by time is found by the key of the table. Of any other list the value that its last request has is
found first, from the one column of that value; times, ids and all other columns are read of requests up to it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_days import Day, list_days
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_sorting import (
    Position,
    RequestSort,
    comparison,
    listed,
    order,
    stored_value,
    value_parameter,
)
from analytics.queries.requests import COLUMNS, RequestRow, count_requests, request_conditions


@dataclass(frozen=True)
class RequestPage:
    """A page of a list; `before` and `after` tell whether the list has requests on that side of it."""

    rows: Sequence[RequestRow]
    before: bool
    after: bool


@dataclass(frozen=True)
class _Value:
    value: Decimal


def list_page(
    project_id: UUID, filters: RequestFilter, sort: RequestSort, *, limit: int, position: Position | None = None
) -> tuple[int, RequestPage]:
    """Returns the number of requests that match, and the page of the list at `position` or at its beginning."""
    filters = listed(filters, sort)
    days = list_days(project_id, filters)
    if days is None:
        return visible.both_visible(
            project_id,
            lambda: count_requests(project_id, filters),
            lambda: _page(project_id, filters, sort, limit, position),
        )
    count = sum(day.requests for day in days)
    if not count:
        return 0, RequestPage([], before=False, after=False)
    near = _near(days, filters, sort, limit, position) if sort.by_time else filters
    return count, _page(project_id, near, sort, limit, position)


def _page(
    project_id: UUID, filters: RequestFilter, sort: RequestSort, limit: int, position: Position | None
) -> RequestPage:
    backward = position is not None and position.backward
    where, params = request_conditions(project_id, filters)
    conditions, values = _conditions(sort, position)
    if not sort.by_time:
        last, bounds = _last_value(where, params, sort, limit, position)
        conditions, values = [*conditions, *last], {**values, **bounds}
    sql = (
        f"SELECT {COLUMNS} FROM requests PREWHERE {' AND '.join([where, *conditions])}"
        f" {order(sort, backward=backward)} LIMIT {{limit:UInt64}}"
    )
    # One request more than the page has says whether the list goes on.
    found = visible.query(sql, {**params, **values, "limit": limit + 1}, row=RequestRow, name="requests.page")
    rows, more = found[:limit], len(found) > limit
    if backward:
        return RequestPage(rows[::-1], before=more, after=True)
    return RequestPage(rows, before=position is not None, after=more)


def _conditions(sort: RequestSort, position: Position | None) -> tuple[list[str], dict[str, Any]]:
    """Returns the conditions of requests on the page's side of the position, with their parameters."""
    if position is None:
        return [], {}
    later = comparison(sort, backward=position.backward)
    times = "ts {op} {at_ts:DateTime64(6, 'UTC')}"
    at_or_later = times.replace("{op}", f"{later}=")
    beside = f"({times.replace('{op}', later)} OR ({at_or_later} AND request_id {later} {{at_id:UUID}}))"
    values: dict[str, Any] = {"at_ts": position.ts, "at_id": position.request_id}
    if sort.by_time:
        # The first condition is redundant and lets the query use the primary key.
        return [at_or_later, beside], values
    value, at_value = sort.column, value_parameter(sort, "at_value")
    conditions = [f"{value} {later}= {at_value}", f"({value} {later} {at_value} OR {beside})"]
    return conditions, {**values, "at_value": stored_value(sort, position.value)}


def _last_value(
    where: str, params: dict[str, Any], sort: RequestSort, limit: int, position: Position | None
) -> tuple[list[str], dict[str, Any]]:
    """Returns the condition of values up to that of the page's last request; none if the list ends before it."""
    backward = position is not None and position.backward
    later = comparison(sort, backward=backward)
    value, values = sort.column, dict(params)
    conditions = [where]
    if position is not None:
        conditions.append(f"{value} {later} {value_parameter(sort, 'at_value')}")
        values["at_value"] = stored_value(sort, position.value)
    direction = " DESC" if later == "<" else ""
    sql = (
        f"SELECT toDecimal128({value}, 10) AS value FROM requests PREWHERE {' AND '.join(conditions)}"
        f" ORDER BY {value}{direction} LIMIT 1 OFFSET {{limit:UInt64}}"
    )
    found = visible.query(sql, {**values, "limit": limit}, row=_Value, name="requests.last_value")
    if not found:
        return [], {}
    up_to = f"{value} {later.translate(_OPPOSITE)}= {value_parameter(sort, 'last_value')}"
    return [up_to], {"last_value": stored_value(sort, found[0].value)}


_OPPOSITE = str.maketrans("<>", "><")


def _near(
    days: Sequence[Day], filters: RequestFilter, sort: RequestSort, limit: int, position: Position | None
) -> RequestFilter:
    """Returns the filter, restricted to the days that hold the page: those up to which more requests lie than it has.

    The day of the position counts for nothing, since its requests may all lie on the other side.
    """
    newest_first = sort.descending != (position is not None and position.backward)
    ordered = days[::-1] if newest_first else days
    at = position.ts.date() if position else None
    reached = 0
    for day in ordered:
        if at is None or (day.day < at if newest_first else day.day > at):
            reached += day.requests
        if reached > limit:
            break
    return _between(filters, *sorted((ordered[0].day, day.day)))


def _between(filters: RequestFilter, first: date, last: date) -> RequestFilter:
    begin = datetime.combine(first, time.min, tzinfo=UTC)
    end = datetime.combine(last, time.max, tzinfo=UTC)
    return replace(filters, start=max(filters.start or begin, begin), end=min(filters.end or end, end))
