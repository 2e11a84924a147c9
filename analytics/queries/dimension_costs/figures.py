from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.dimensions import Dimension, rollups_of, source_of
from analytics.queries.rollup_ranges import IS_EARLIER, Key, same
from analytics.queries.summed import Costs, Scope, Sums, nothing, summed
from analytics.queries.usage import Interval
from core.wire.shown import seen_as


@dataclass(frozen=True)
class KeyCosts(Costs):
    """The cost of one key. Planning a query takes most of its time and grows with its columns, so a period that is only
    compared is read without the other figures."""

    key: str


@dataclass(frozen=True)
class KeySums(Sums):
    key: str


Figures = TypeVar("Figures", KeyCosts, KeySums)
NO_COSTS = nothing(Costs)


@dataclass(frozen=True)
class CostPage:
    """A page of the `count` keys of a dimension, with figures, their costs in the period before, and the total costs of
    both periods."""

    count: int
    keys: Sequence[str]
    figures: Mapping[str, KeySums]
    costs_before: Mapping[str, KeyCosts]
    total: Costs
    total_before: Costs


SESSION_HASH = Key("t.session_hash", "cityHash64(t.session_id)")


def ordered(rows: Iterable[KeyCosts | KeySums]) -> list[str]:
    return [row.key for row in sorted(rows, key=lambda row: (-row.total_cost_usd, -row.request_count, row.key))]


def rows_of(
    scope: Scope,
    dimension: Dimension,
    keys: Sequence[str] | None = None,
    *,
    session_hashes: Sequence[int] | None = None,
    row: type[Figures],
) -> Mapping[str, Figures]:
    source = partial(union_of_rollups, scope, dimension, keys=keys, session_hashes=session_hashes)
    found = summed(row, source, by=["key"], run=run_of(dimension), name="spend.figures")
    return {one.key: one for one in found}


def total_of(scope: Scope) -> Costs:
    return summed(Costs, scope.plain(keys={"key": same("''")}), name="spend.totals")[0]


@dataclass(frozen=True)
class _PeriodCosts(Costs):
    is_earlier: int


def totals_of(scope: Scope, before: Scope) -> tuple[Costs, Costs]:
    source = scope.plain(keys={"is_earlier": IS_EARLIER}, earlier=(before.start, before.end))
    rows = summed(_PeriodCosts, source, by=["is_earlier"], name="spend.totals")
    found = {row.is_earlier: seen_as(Costs, row) for row in rows}
    return found.get(0, NO_COSTS), found.get(1, NO_COSTS)


def union_of_rollups(
    scope: Scope,
    dimension: Dimension,
    *,
    figures: Sequence[str],
    keys: Sequence[str] | None = None,
    session_hashes: Sequence[int] | None = None,
    interval: Interval = Interval.DAY,
    **more: Key,
) -> tuple[str, Mapping[str, Any]]:
    """A subquery over the rollups and requests of the scope, and its parameters. Its columns are `key`, those of `more`
    and the figures; several rows may have the same key."""
    of = source_of(dimension)
    where = "1" if keys is None else f"{of.key.rollup.format()} IN {{keys:Array(String)}}"
    where_rollup, where_request = "1" if keys is None else of.of_keys, of.where_request
    if session_hashes is not None:
        where_rollup = f"{SESSION_HASH.rollup} IN {{hashes:Array(UInt64)}}"
        where_request += f" AND {SESSION_HASH.request} IN {{hashes:Array(UInt64)}}"
    source = scope.of(
        *rollups_of(dimension, scope.start, scope.end, interval),
        keys={"key": of.key, **more},
        where=where,
        where_rollup=where_rollup,
        where_request=where_request,
    )
    given = {
        "hashes": session_hashes and list(session_hashes),
        "tag": scope.tag if dimension is Dimension.METADATA else None,
        "keys": keys and list(keys),
    }
    sql, params = source(figures=figures)
    return sql, {**params, **{name: value for name, value in given.items() if value is not None}}


def run_of(dimension: Dimension) -> Callable[..., list[Any]]:
    return visible.query if dimension is Dimension.SESSION else client.query
