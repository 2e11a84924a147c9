"""Builds queries of exact figures over any range of time that read few rows.

Whole days are read from a rollup by day, the whole hours around them from one by hour, and the rest at both ends from
the requests. A query names its rollups, coarse before fine, and groups the rows of `union`. Late
rollups (`analytics.clickhouse.late_figures`) are not asked for what is not over, nor for the latest minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from analytics.queries.operations import condition, stored_operations

TICK = timedelta(microseconds=1)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# No record has a later time (`shipper.columns`), and the types of ClickHouse end soon after.
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Rollup:
    """A table of sums per unit of time; `time` is the column of a row's start, of ClickHouse's type `type`.

    A request may be in a late one only a minute after it was recorded.
    """

    table: str
    time: str
    type: str
    unit: timedelta
    is_late: bool = True


DAYS = Rollup("requests_daily", "day", "Date", timedelta(days=1))
HOURS = Rollup("requests_hourly", "hour", "DateTime('UTC')", timedelta(hours=1))
MINUTES = Rollup("requests_minute", "minute", "DateTime('UTC')", timedelta(minutes=1))
USER_DAYS = Rollup("users_daily", "day", "Date", timedelta(days=1))
USER_HOURS = Rollup("users_hourly", "hour", "DateTime('UTC')", timedelta(hours=1))
ERROR_DAYS = Rollup("errors_daily", "day", "Date", timedelta(days=1))
GUARDRAIL_HOURS = Rollup("guardrails_hourly", "hour", "DateTime('UTC')", timedelta(hours=1))
ERROR_KIND_HOURS = Rollup("error_kinds_hourly", "hour", "DateTime('UTC')", timedelta(hours=1))
SPEND_HOURS = Rollup("spend_hourly", "hour", "DateTime('UTC')", timedelta(hours=1))
FAILOVER_QUARTERS = Rollup("failovers_quarter_hourly", "quarter", "DateTime('UTC')", timedelta(minutes=15))
SESSION_DAYS = Rollup("session_days", "day", "Date", timedelta(days=1), is_late=False)

_ROWS = Rollup("requests", "ts", "DateTime64(6, 'UTC')", TICK)


class Key(NamedTuple):
    """A key's expression over rows `t` of a rollup, and over requests `t`; `{time}` stands for the time of either."""

    rollup: str
    request: str


class Figure(NamedTuple):
    """A figure's expression over requests `t`, as the rollups compute it, and its total over rows `f` of `union`."""

    request: str
    total: str


def _sum(name: str, request: str) -> Figure:
    return Figure(request, f"sum(f.{name})")


_LEVELS = "(0.5, 0.95, 0.99)"
# A line of a batch has no latency of its own.
_IS_BATCHED = "(t.source = 'batch')"
# Columns are qualified, since an unqualified name would mean the alias of the same name.
FIGURES: Mapping[str, Figure] = {
    "requests": _sum("requests", "count()"),
    "batched": _sum("batched", f"countIf({_IS_BATCHED})"),
    "errors": _sum("errors", "countIf(t.outcome IN ('error', 'interrupted'))"),
    "cancelled": _sum("cancelled", "countIf(t.outcome = 'cancelled')"),
    "unpriced": _sum("unpriced", "countIf(NOT t.cost_known)"),
    "prompt_tokens": _sum("prompt_tokens", "sum(toUInt64(t.prompt_tokens))"),
    "completion_tokens": _sum("completion_tokens", "sum(toUInt64(t.completion_tokens))"),
    "cache_read_tokens": _sum("cache_read_tokens", "sum(toUInt64(t.cache_read_tokens))"),
    "cache_write_tokens": _sum("cache_write_tokens", "sum(toUInt64(t.cache_write_tokens))"),
    "cost_usd": _sum("cost_usd", "sum(toDecimal128(t.cost_usd, 10))"),
    "latency_sum_ms": _sum("latency_sum_ms", "sum(toUInt64(t.latency_ms))"),
    "latency_q": Figure(
        f"quantilesTDigestStateIf{_LEVELS}(t.latency_ms, NOT {_IS_BATCHED})",
        f"quantilesTDigestMerge{_LEVELS}(f.latency_q)",
    ),
    "streamed": _sum("streamed", "countIf(t.ttft_ms > 0)"),
    "ttft_q": Figure(
        f"quantilesTDigestStateIf{_LEVELS}(t.ttft_ms, t.ttft_ms > 0)", f"quantilesTDigestMerge{_LEVELS}(f.ttft_q)"
    ),
    "models": Figure("groupUniqArrayIf(toString(t.model), t.model != '')", "arraySort(groupUniqArrayArray(f.models))"),
    "session_set": Figure(
        "uniqExactStateIf(cityHash64(t.session_id), t.session_id != '' AND t.user_id != '')",
        "uniqExactMerge(f.session_set)",
    ),
    "first_at": Figure("min(t.ts)", "min(f.first_at)"),
    "last_at": Figure("max(t.ts)", "max(f.last_at)"),
}

Span = tuple[datetime, datetime]

# The setting is for `client.query`. The queries name their own PREWHERE, because the server takes up to a fifth of a
# query's time to choose one.
PLANNED: Mapping[str, Any] = {"optimize_move_to_prewhere": 0}

_FEW_HOURS = timedelta(days=31)


def same(expression: str) -> Key:
    return Key(expression, expression)


IS_EARLIER = same("toUInt8({time} < {{later_from:DateTime64(6, 'UTC')}})")
"""The key that is 1 in the range `earlier` of `union`."""


def clamp(moment: datetime) -> datetime:
    return min(max(moment, _EPOCH), _LATEST)


def fresh_from() -> datetime:
    """The time from which on a late rollup may still lack requests."""
    return datetime.now(UTC) - timedelta(minutes=1)


def plain_rollups(start: datetime, end: datetime) -> Sequence[Rollup]:
    """The rollups for plain sums: for up to a month, hours alone are faster than days and hours."""
    return [HOURS] if end - start <= _FEW_HOURS else [DAYS, HOURS]


def totals(*names: str) -> str:
    return ", ".join(f"{FIGURES[name].total} AS {name}" for name in names)


def union(
    project_id: UUID,
    rollups: Sequence[Rollup],
    start: datetime,
    end: datetime,
    *,
    keys: Mapping[str, Key],
    figures: Sequence[str] = (),
    where: str = "1",
    where_rollup: str = "1",
    where_request: str = "1",
    operation: str = "",
    earlier: Span | None = None,
) -> tuple[str, dict[str, Any]]:
    """A subquery over the requests from `start` to `end`, both included, with the columns `keys` and `figures`, and its
    parameters.

    `earlier`, inclusive too, ends before `start` and is read in the same pass, since planning a table's columns takes
    longer than reading them; the key IS_EARLIER tells the two apart. `where` is a condition on rows `t` of the rollups
    and the requests; `where_rollup` only on the rollups, such as one that an index answers; `where_request` only on
    `requests`, for a rollup that has only some of the requests. An `operation` leaves out the requests of all others.
    """
    units = [rollup.unit for rollup in rollups]
    stop = clamp(end + TICK)
    over = min(stop, fresh_from()) if any(rollup.is_late for rollup in rollups) else stop
    pieces, rest = split(clamp(start), over, units)
    if over < stop:
        rest = [*rest, (max(clamp(start), over), stop)]
    selects: list[str] = []
    params: dict[str, Any] = {"project": project_id}
    if earlier is not None:
        pieces_earlier, rest_earlier = split(clamp(earlier[0]), clamp(earlier[1] + TICK), units)
        pieces = [[*before, *now] for before, now in zip(pieces_earlier, pieces, strict=True)]
        rest = [*rest_earlier, *rest]
        params["later_from"] = clamp(start)
    if operation:
        where += f" AND {condition(operation)}"
        params["operation"] = stored_operations(operation)
    for rollup, intervals in zip((*rollups, _ROWS), (*pieces, rest), strict=True):
        if not intervals:
            continue
        within, values = _within(rollup, intervals)
        params |= values
        selects.append(
            _select_requests(within, keys, figures, f"{where} AND {where_request}")
            if rollup is _ROWS
            else _select_rollup(rollup, within, keys, figures, f"{where} AND {where_rollup}")
        )
    # An empty range still has to give a query with these columns.
    return f"({' UNION ALL '.join(selects or [_select_requests('0', keys, figures, '1')])})", params


def split(start: datetime, stop: datetime, units: Sequence[timedelta]) -> tuple[list[list[Span]], list[Span]]:
    """Splits the range from `start` up to `stop` into whole units, coarse before fine, and the rest."""
    pieces, rest = [], [(start, stop)] if start < stop else []
    for unit in units:
        whole, left = [], []
        for begin, until in rest:
            first, last = _EPOCH - (_EPOCH - begin) // unit * unit, _EPOCH + (until - _EPOCH) // unit * unit
            if first < last:
                whole.append((first, last))
                left += [side for side in ((begin, first), (last, until)) if side[0] < side[1]]
            else:
                left.append((begin, until))
        pieces.append(whole)
        rest = left
    return pieces, rest


def _within(rollup: Rollup, intervals: Sequence[Span]) -> tuple[str, dict[str, Any]]:
    conditions: list[str] = []
    params: dict[str, Any] = {}
    for index, (begin, until) in enumerate(intervals):
        first, last = (f"{rollup.table}_{name}_{index}" for name in ("from", "until"))
        conditions.append(
            f"(t.{rollup.time} >= {{{first}:{rollup.type}}} AND t.{rollup.time} < {{{last}:{rollup.type}}})"
        )
        days = rollup.type == "Date"
        params |= {first: begin.date() if days else begin, last: until.date() if days else until}
    return f"({' OR '.join(conditions)})", params


def _select_rollup(rollup: Rollup, within: str, keys: Mapping[str, Key], figures: Sequence[str], where: str) -> str:
    columns = [f"{key.rollup.format(time=f't.{rollup.time}')} AS {name}" for name, key in keys.items()]
    columns += [f"t.{name} AS {name}" for name in figures]
    return (
        f"SELECT {', '.join(columns)} FROM {rollup.table} AS t"
        f" PREWHERE t.project_id = {{project:UUID}} AND {within} AND {where}"
    )


def _select_requests(within: str, keys: Mapping[str, Key], figures: Sequence[str], where: str) -> str:
    """The SELECT over single requests, grouped by the keys, so that a million rows become few."""
    columns = [f"{key.request.format(time=f't.{_ROWS.time}')} AS {name}" for name, key in keys.items()]
    columns += [f"{FIGURES[name].request} AS {name}" for name in figures]
    return (
        f"SELECT {', '.join(columns)} FROM requests AS t"
        f" PREWHERE t.project_id = {{project:UUID}} AND {within} AND {where} GROUP BY {', '.join(keys)}"
    )
