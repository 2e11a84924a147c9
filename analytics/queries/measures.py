"""Measures the requests that match a filter: any figures, for the whole range or each interval, in total or by a key.

The rollups that have the columns of filter, key and figures answer; otherwise the requests of the range are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.dimensions import Dimension, source_of
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.rollup_ranges import (
    DAYS,
    HOURS,
    MINUTES,
    PLANNED,
    SPEND_HOURS,
    USER_DAYS,
    USER_HOURS,
    Key,
    Rollup,
    same,
    totals,
    union,
)
from analytics.queries.usage import BEGINNING, Interval


class Measure(NamedTuple):
    """A figure of some requests: the sums that it is made of, and its SQL over them, not a number where it has none."""

    sums: Sequence[str]
    sql: str


def _percentile(name: str, place: int) -> Measure:
    return Measure([name], f"{name}[{place}]")


def _sum(name: str) -> Measure:
    return Measure([name], name)


_OF_MODELS = frozenset({"provider", "model", "operation"})
_OF_USERS = frozenset({"user_id", "operation"})
_OF_SPEND = frozenset({"api_key_id", "team_id", "source", "prompt_config_id", "prompt_version", "operation"})
_OF_ARMS = _OF_MODELS | {"prompt_config_id", "prompt_version", "rollout_id", "variant"}
_PERCENTILES = frozenset({"latency_q", "ttft_q"})

MEASURES: Mapping[str, Measure] = {
    "request_count": _sum("requests"),
    "error_count": _sum("errors"),
    "error_rate": Measure(["errors", "requests"], "errors / requests"),
    "cancelled_count": _sum("cancelled"),
    "unpriced_request_count": _sum("unpriced"),
    "prompt_tokens": _sum("prompt_tokens"),
    "completion_tokens": _sum("completion_tokens"),
    "cache_read_tokens": _sum("cache_read_tokens"),
    "cache_write_tokens": _sum("cache_write_tokens"),
    "total_tokens": Measure(["prompt_tokens", "completion_tokens"], "prompt_tokens + completion_tokens"),
    "total_cost_usd": _sum("cost_usd"),
    "average_cost_usd": Measure(["cost_usd", "requests"], "toFloat64(cost_usd) / requests"),
    # A line of a batch has no latency of its own.
    "average_latency_ms": Measure(["latency_sum_ms", "requests", "batched"], "latency_sum_ms / (requests - batched)"),
    "p50_latency_ms": _percentile("latency_q", 1),
    "p95_latency_ms": _percentile("latency_q", 2),
    "p99_latency_ms": _percentile("latency_q", 3),
    "p50_ttft_ms": _percentile("ttft_q", 1),
    "p95_ttft_ms": _percentile("ttft_q", 2),
    "p99_ttft_ms": _percentile("ttft_q", 3),
}


class Group(NamedTuple):
    """A way to split requests: the expression of its key, and the columns of rollups that it reads. Without columns
    the requests themselves are read."""

    key: Key
    fields: frozenset[str] = frozenset()


_FIELDS: Mapping[Dimension, frozenset[str]] = {
    Dimension.MODEL: frozenset({"model"}),
    Dimension.PROVIDER: frozenset({"provider"}),
    Dimension.OPERATION: frozenset({"operation"}),
    Dimension.USER: frozenset({"user_id"}),
    Dimension.API_KEY: frozenset({"api_key_id"}),
    Dimension.TEAM: frozenset({"team_id"}),
    Dimension.PROMPT: frozenset({"prompt_config_id"}),
    Dimension.PROMPT_VERSION: frozenset({"prompt_config_id", "prompt_version"}),
    Dimension.SOURCE: frozenset({"source"}),
}
# Sessions are as many as requests, and each ends soon: a figure by session has no use over time.
GROUPS: Mapping[str, Group] = {
    **{
        str(one): Group(source_of(one).key, _FIELDS.get(one, frozenset()))
        for one in Dimension
        if one is not Dimension.SESSION
    },
    "error_code": Group(same("toString(t.error_code)")),
    "outcome": Group(same("toString(t.outcome)")),
}
METADATA = str(Dimension.METADATA)


class _Known(NamedTuple):
    """The columns of some rollups, and whether they have percentiles."""

    fields: frozenset[str]
    has_percentiles: bool
    rollups: Sequence[Rollup]


# The rollups by length of interval, the cheapest first.
_ROLLUPS: Mapping[Interval, Sequence[_Known]] = {
    Interval.MINUTE: (_Known(_OF_ARMS, True, (MINUTES,)),),
    Interval.HOUR: (
        _Known(_OF_MODELS, True, (HOURS,)),
        _Known(_OF_USERS, False, (USER_HOURS,)),
        _Known(_OF_SPEND, False, (SPEND_HOURS,)),
        _Known(_OF_ARMS, True, (MINUTES,)),
    ),
    Interval.DAY: (
        _Known(_OF_MODELS, True, (DAYS, HOURS)),
        _Known(_OF_USERS, False, (USER_DAYS, USER_HOURS)),
        _Known(_OF_SPEND, False, (SPEND_HOURS,)),
        _Known(_OF_ARMS, True, (MINUTES,)),
    ),
}
_ALL = Group(same("''"))
_NO_TIME = same("toDateTime('1970-01-01 00:00:00', 'UTC')")


@dataclass(frozen=True)
class Scope:
    """The requests that match a filter and arrived from `start` to `end`, both included, split by a group of GROUPS
    unless `group_by` is empty. `tag` is the attribute by which METADATA splits."""

    project_id: UUID
    start: datetime
    end: datetime
    filters: RequestFilter
    group_by: str = ""
    tag: str = ""


@dataclass(frozen=True)
class MeasuredRow:
    """The values of the asked figures for one key in the interval that begins at `start`; a value without anything to
    measure is not a number."""

    key: str
    start: datetime
    values: Sequence[float]


def measure(scope: Scope, names: Sequence[str], *, limit: int) -> list[MeasuredRow]:
    """Returns the figures `names` of MEASURES over the whole range, the keys with the largest first figure first; no
    row without requests."""
    order = "ORDER BY isNaN(values[1]), values[1] DESC, key LIMIT {limit:UInt64}"
    return _query(scope, names, None, order, {"limit": limit}, "measures.total")


def measure_intervals(
    scope: Scope, names: Sequence[str], interval: Interval, *, keys: Sequence[str] | None = None
) -> list[MeasuredRow]:
    """Returns the figures of each interval that has requests, of all keys or of the given ones."""
    return _query(scope, names, interval, "", {} if keys is None else {"keys": list(keys)}, "measures.intervals")


def _query(
    scope: Scope, names: Sequence[str], interval: Interval | None, tail: str, more: Mapping[str, Any], name: str
) -> list[MeasuredRow]:
    sums = list(dict.fromkeys(one for figure in names for one in MEASURES[figure].sums))
    source, params = _source(scope, sums, interval, has_keys="keys" in more)
    values = ", ".join(f"toFloat64({MEASURES[figure].sql})" for figure in names)
    sql = f"""
SELECT key, toDateTime64(start, 6, 'UTC') AS start, [{values}] AS values
FROM (SELECT f.key AS key, f.start AS start, {totals(*sums)} FROM {source} AS f GROUP BY key, start) {tail}
"""
    given = {**params, **more, "project": scope.project_id}
    return client.query(sql, given, row=MeasuredRow, name=name, database_settings=PLANNED)


def _source(
    scope: Scope, sums: Sequence[str], interval: Interval | None, *, has_keys: bool
) -> tuple[str, dict[str, Any]]:
    conditions = conditions_of(scope.filters)
    fields = conditions.conditions.keys() - {"start", "end"}
    group = GROUPS[scope.group_by] if scope.group_by else _ALL
    key = group.key
    where = [f"({conditions.conditions[name]})" for name in sorted(fields)]
    if has_keys:
        where.append(f"{key.rollup.format()} IN {{keys:Array(String)}}")
    beginning = Key(BEGINNING[interval], BEGINNING[interval]) if interval else _NO_TIME
    source, params = union(
        _rollups(group, fields, sums, interval or Interval.DAY),
        scope.start,
        scope.end,
        keys={"key": key, "start": beginning},
        figures=sums,
        where=" AND ".join(["1", *where]),
    )
    tag = {"tag": scope.tag} if scope.group_by == METADATA else {}
    return source, {**conditions.values, **params, **tag}


def _rollups(group: Group, fields: Set[str], sums: Sequence[str], interval: Interval) -> Sequence[Rollup]:
    if group is not _ALL and not group.fields:
        return ()
    needed, has_percentiles = fields | group.fields, bool(_PERCENTILES & set(sums))
    found = (
        known.rollups
        for known in _ROLLUPS[interval]
        if needed <= known.fields and (known.has_percentiles or not has_percentiles)
    )
    return next(found, ())
