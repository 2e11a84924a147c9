"""Measures any figures of matching requests, for the whole range or each interval, in total or by a key.

Rollups answer if they have the columns of filter, key and figures; otherwise the requests of the range are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from analytics.queries.dimensions import Dimension, source_of
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.rollup_ranges import (
    DAYS,
    HOURS,
    MINUTES,
    SPEND_HOURS,
    USER_DAYS,
    USER_HOURS,
    Key,
    Rollup,
    same,
    union,
)
from analytics.queries.summed import BEGINS, MEASURES, summed
from analytics.queries.usage import BEGINNING, Interval

_OF_MODELS = frozenset({"provider", "model", "operation"})
OF_USERS = frozenset({"user_id", "operation"})
OF_SPEND = frozenset({"api_key_id", "team_id", "source", "prompt_config_id", "prompt_version", "operation"})
_OF_ARMS = _OF_MODELS | {"prompt_config_id", "prompt_version", "rollout_id", "variant"}
_PERCENTILES = frozenset({"latency_q", "ttft_q"})


class Group(NamedTuple):
    """How to split requests: the expression of the key, and the rollup columns that it reads. Without columns the
    requests are read."""

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
    fields: frozenset[str]
    has_percentiles: bool
    rollups: Sequence[Rollup]


# The rollups by length of interval, the cheapest first.
_ROLLUPS: Mapping[Interval, Sequence[_Known]] = {
    Interval.MINUTE: (_Known(_OF_ARMS, True, (MINUTES,)),),
    Interval.HOUR: (
        _Known(_OF_MODELS, True, (HOURS,)),
        _Known(OF_USERS, False, (USER_HOURS,)),
        _Known(OF_SPEND, False, (SPEND_HOURS,)),
        _Known(_OF_ARMS, True, (MINUTES,)),
    ),
    Interval.DAY: (
        _Known(_OF_MODELS, True, (DAYS, HOURS)),
        _Known(OF_USERS, False, (USER_DAYS, USER_HOURS)),
        _Known(OF_SPEND, False, (SPEND_HOURS,)),
        _Known(_OF_ARMS, True, (MINUTES,)),
    ),
}
_ALL = Group(same("''"))
_NO_TIME = same("toDateTime('1970-01-01 00:00:00', 'UTC')")


@dataclass(frozen=True)
class Scope:
    """The matching requests from `start` to `end`, both included, split by a group of GROUPS unless `group_by` is
    empty. `tag` is the attribute by which METADATA splits."""

    project_id: UUID
    start: datetime
    end: datetime
    filters: RequestFilter
    group_by: str = ""
    tag: str = ""


@dataclass(frozen=True)
class MeasuredRow:
    """The values of the figures for one key in the interval that begins at `start`; NaN if there is nothing to
    measure.
    """

    key: str
    start: datetime
    values: Sequence[float]


def measure(scope: Scope, names: Sequence[str], *, limit: int) -> list[MeasuredRow]:
    """The figures `names` of MEASURES over the whole range, the keys with the largest first figure first. No row
    without requests."""
    order = "ORDER BY isNaN(values[1]), values[1] DESC, key LIMIT {limit:UInt64}"
    return _query(scope, names, None, order, {"limit": limit}, "measures.total")


def measure_intervals(
    scope: Scope, names: Sequence[str], interval: Interval, *, keys: Sequence[str] | None = None
) -> list[MeasuredRow]:
    return _query(scope, names, interval, "", {} if keys is None else {"keys": list(keys)}, "measures.intervals")


def _query(
    scope: Scope, names: Sequence[str], interval: Interval | None, tail: str, more: Mapping[str, Any], name: str
) -> list[MeasuredRow]:
    values = ", ".join(f"toFloat64({MEASURES[figure].sql})" for figure in names)
    return summed(
        MeasuredRow,
        partial(_source, scope, interval, has_keys="keys" in more),
        by=["key", "start"],
        also=[one for figure in names for one in MEASURES[figure].sums],
        outer={**BEGINS, "values": f"[{values}]"},
        tail=tail,
        values=more,
        name=name,
    )


def _source(
    scope: Scope, interval: Interval | None, *, figures: Sequence[str], has_keys: bool
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
        scope.project_id,
        _rollups(group, fields, figures, interval or Interval.DAY),
        scope.start,
        scope.end,
        keys={"key": key, "start": beginning},
        figures=figures,
        where=" AND ".join(["1", *where]),
    )
    tag = {"tag": scope.tag} if scope.group_by == METADATA else {}
    return source, {**conditions.values, **params, **tag}


def knows(fields: Set[str], interval: Interval) -> bool:
    return any(fields <= known.fields for known in _ROLLUPS[interval])


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
