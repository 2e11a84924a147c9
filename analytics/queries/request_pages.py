"""Lists requests in any order, a page at a time behind or before a request of the list.

A page of a list by time is found by the key of the table. Of any other list the value that its last request has is
found first, from the one column of that value; times, ids and all other columns are read of requests up to it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import MappingProxyType
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


@dataclass(frozen=True)
class _Question:
    """One page of a list: the WHERE of its requests with its parameters, and the place of the page."""

    where: str
    params: Mapping[str, Any]
    sort: RequestSort
    limit: int
    position: Position | None

    @property
    def backward(self) -> bool:
        return self.position is not None and self.position.backward

    @property
    def later(self) -> str:
        return comparison(self.sort, backward=self.backward)


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
    question = _Question(*request_conditions(project_id, filters), sort, limit, position)
    # One request more than the page has says whether the list goes on.
    found = _rows(question) if sort.by_time else _rows_by_value(question)
    rows, more = found[:limit], len(found) > limit
    if question.backward:
        return RequestPage(rows[::-1], before=more, after=True)
    return RequestPage(rows, before=position is not None, after=more)


def _rows_by_value(question: _Question) -> list[RequestRow]:
    position = question.position
    if position is not None and not position.value and not question.backward:
        alike = _rows_of_value(question, Decimal(0))
        # Nothing is below 0, and an ascending list goes on with larger values.
        if len(alike) > question.limit or question.sort.descending:
            return alike
    first, last = _first_and_last_value(question)
    if first is None or last is None:
        return _rows(question)
    if position is None and first == last:
        return _rows_of_value(question, last)
    earlier = {"<": ">", ">": "<"}[question.later]
    parameter = value_parameter(question.sort, "last_value")
    up_to = f"{question.sort.column} {earlier}= {parameter}"
    return _rows(question, [up_to], {"last_value": stored_value(question.sort, last)})


def _rows_of_value(question: _Question, value: Decimal) -> list[RequestRow]:
    """Returns the page's requests of one value, which are in the order of the table's key: reading ends with the page,
    where all requests of a value that many have would have to be sorted."""
    parameter = value_parameter(question.sort, "value")
    by_time = RequestSort.NEWEST if question.sort.descending else RequestSort.OLDEST
    alike = replace(question, sort=by_time, where=f"{question.where} AND {question.sort.column} = {parameter}")
    return _rows(alike, values={"value": stored_value(question.sort, value)})


def _rows(
    question: _Question, conditions: Sequence[str] = (), values: Mapping[str, Any] = MappingProxyType({})
) -> list[RequestRow]:
    beside, places = _conditions(question.sort, question.position)
    sql = (
        f"SELECT {COLUMNS} FROM requests PREWHERE {' AND '.join([question.where, *beside, *conditions])}"
        f" {order(question.sort, backward=question.backward)} LIMIT {{limit:UInt64}}"
    )
    params = {**question.params, **places, **values, "limit": question.limit + 1}
    return visible.query(sql, params, row=RequestRow, name="requests.page")


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


def _first_and_last_value(question: _Question) -> tuple[Decimal | None, Decimal | None]:
    """Returns the first value of the list behind that of the position, and the value of the last request of a page
    that begins there; None and None if the list ends before."""
    value, values, conditions = question.sort.column, dict(question.params), [question.where]
    if question.position is not None:
        conditions.append(f"{value} {question.later} {value_parameter(question.sort, 'at_value')}")
        values["at_value"] = stored_value(question.sort, question.position.value)
    direction = " DESC" if question.later == "<" else ""
    sql = (
        f"SELECT toDecimal128({value}, 10) AS value FROM requests PREWHERE {' AND '.join(conditions)}"
        f" ORDER BY {value}{direction} LIMIT {{limit:UInt64}}"
    )
    params = {**values, "limit": question.limit + 1}
    found = visible.query(sql, params, row=_Value, name="requests.values")
    return (found[0].value, found[-1].value) if len(found) > question.limit else (None, None)


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
