"""Lists requests in any order, a page after or before a given request.

A page by time is found by the table's key. For other orders, the value of the page's last request is found first, from
that column alone or a rollup in its order; times, ids and all other columns are read only for requests up to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import accumulate, takewhile
from types import MappingProxyType
from typing import Any
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_days import LATENCY_DAYS, LATENCY_FIELDS, Day, list_days
from analytics.queries.request_filters import RequestFilter, conditions_of, values_of
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
from analytics.request_log.record import Outcome

_LOG = "requests"
# Among a thousand requests some are nearly always as slow as the slowest failed ones. The index `i_failed_latency` is
# of those that failed; a condition on its expression is looked up in it.
_FAILED_LATENCY = "if(outcome = 'error', latency_ms, 0)"
# How many rows of a rollup are read for each request of a page: those of the page's last value lie on several days, and
# all of them have to be known.
_VALUES_BEYOND = 4


@dataclass(frozen=True)
class RequestPage:
    rows: Sequence[RequestRow]
    before: bool
    after: bool


@dataclass(frozen=True)
class _Value:
    value: Decimal
    requests: int
    day: date


@dataclass(frozen=True)
class _Reach:
    first: Decimal
    last: Decimal
    days: Sequence[date] | None


@dataclass(frozen=True)
class _Question:
    where: str
    params: Mapping[str, Any]
    sort: RequestSort
    limit: int
    position: Position | None
    # The table that has the values by which the list is ordered.
    values: str
    # The expression of that value in an index of the list's requests alone; empty where there is none.
    indexed: str

    @property
    def backward(self) -> bool:
        return self.position is not None and self.position.backward

    @property
    def later(self) -> str:
        return comparison(self.sort, backward=self.backward)


def list_page(
    project_id: UUID, filters: RequestFilter, sort: RequestSort, *, limit: int, position: Position | None = None
) -> tuple[int, RequestPage]:
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
    question = _Question(
        *request_conditions(project_id, filters),
        sort,
        limit,
        position,
        _table_of_values(filters, sort),
        _indexed_value(filters, sort),
    )
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
    reach = _reach(question)
    if reach is None:
        return _rows(question)
    of_one_value = position is None and reach.first == reach.last
    found = _rows_of_value(question, reach.last) if of_one_value else _rows_within(question, reach)
    if len(found) <= question.limit and question.values != _LOG:
        # The rollup also has requests that the list has not: those of sessions whose deletion is under way, and expired
        # ones that it has not dropped yet.
        return _rows_by_value(replace(question, values=_LOG))
    return found


def _rows_within(question: _Question, reach: _Reach) -> list[RequestRow]:
    earlier = {"<": ">", ">": "<"}[question.later]
    conditions = [f"{question.sort.column} {earlier}= {value_parameter(question.sort, 'last_value')}"]
    if question.indexed and earlier == ">":
        conditions.append(f"{question.indexed} >= {value_parameter(question.sort, 'last_value')}")
    values: dict[str, Any] = {"last_value": stored_value(question.sort, reach.last)}
    if reach.days is not None:
        conditions.append("toDate(ts, 'UTC') IN {days:Array(Date)}")
        values["days"] = reach.days
    return _rows(question, conditions, values)


def _rows_of_value(question: _Question, value: Decimal) -> list[RequestRow]:
    """The page's requests of one value, read in the order of the table's key: reading ends with the page, instead of
    sorting all requests with a common value."""
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


def _reach(question: _Question) -> _Reach | None:
    wanted = question.limit + 1
    found = _values(question, wanted)
    until = bisect_left(list(accumulate(row.requests for row in found)), wanted)
    if until == len(found):
        return None
    first, last = found[0].value, found[until].value
    # Requests of the last value may lie on further days behind what was read, as may those of the position's value.
    if question.values == _LOG or question.position is not None or found[-1].value == last:
        return _Reach(first, last, None)
    alike = takewhile(lambda row: row.value == last, found[until:])
    return _Reach(first, last, sorted({row.day for row in (*found[:until], *alike)}))


def _values(question: _Question, wanted: int) -> list[_Value]:
    value, values, conditions = question.sort.column, dict(question.params), [question.where]
    if question.position is not None:
        conditions.append(f"{value} {question.later} {value_parameter(question.sort, 'at_value')}")
        values["at_value"] = stored_value(question.sort, question.position.value)
    direction = " DESC" if question.later == "<" else ""
    requests, day, beyond = ("1", "toDate(0)", 1) if question.values == _LOG else ("requests", "day", _VALUES_BEYOND)
    sql = (
        f"SELECT toDecimal128({value}, 10) AS value, toUInt64({requests}) AS requests, {day} AS day"
        f" FROM {question.values} PREWHERE {' AND '.join(conditions)}"
        f" ORDER BY {value}{direction} LIMIT {{limit:UInt64}}"
    )
    params = {**values, "limit": wanted * beyond}
    return visible.query(sql, params, row=_Value, name="requests.values")


def _table_of_values(filters: RequestFilter, sort: RequestSort) -> str:
    fields = conditions_of(filters).conditions.keys()
    return LATENCY_DAYS.table if sort.column == "latency_ms" and fields <= LATENCY_FIELDS else _LOG


def _indexed_value(filters: RequestFilter, sort: RequestSort) -> str:
    is_of_failed = values_of(filters, "outcome") == (Outcome.ERROR,)
    return _FAILED_LATENCY if is_of_failed and sort.column == "latency_ms" else ""


def _near(
    days: Sequence[Day], filters: RequestFilter, sort: RequestSort, limit: int, position: Position | None
) -> RequestFilter:
    """Restricts the filter to the days that hold the page: those before which enough requests lie.

    The position's own day does not count, since its requests may all lie on the other side.
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
