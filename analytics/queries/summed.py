"""Sums up requests by any keys: a row's fields say which figures are asked, by their names in the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import FIGURES, PLANNED, Rollup, plain_rollups, union

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)


Source = Callable[..., tuple[str, Mapping[str, Any]]]
"""What `rollup_ranges.union` returns, without its figures."""


@dataclass(frozen=True)
class Scope:
    """The requests from `start` to `end`, both included, of one `operation` unless it is empty. `tag` is the attribute
    by which the dimension METADATA splits."""

    project_id: UUID
    start: datetime
    end: datetime
    operation: str = ""
    tag: str = ""

    def of(self, *rollups: Rollup, **how: Any) -> Source:
        return partial(union, self.project_id, rollups, self.start, self.end, operation=self.operation, **how)

    def plain(self, **how: Any) -> Source:
        return self.of(*plain_rollups(self.start, self.end), **how)


class Measure(NamedTuple):
    sums: Sequence[str]
    sql: str


def _percentile(name: str, place: int) -> Measure:
    return Measure([name], f"{name}[{place}]")


def _sum(name: str) -> Measure:
    return Measure([name], name)


MEASURES: Mapping[str, Measure] = {
    "request_count": _sum("requests"),
    "error_count": _sum("errors"),
    "error_rate": Measure(["errors", "requests"], "errors / requests"),
    "cancelled_count": _sum("cancelled"),
    "unpriced_request_count": _sum("unpriced"),
    "prompt_tokens": _sum("prompt_tokens"),
    "completion_tokens": _sum("completion_tokens"),
    "input_tokens": _sum("prompt_tokens"),
    "output_tokens": _sum("completion_tokens"),
    "cache_read_tokens": _sum("cache_read_tokens"),
    "cache_write_tokens": _sum("cache_write_tokens"),
    "total_tokens": Measure(["prompt_tokens", "completion_tokens"], "prompt_tokens + completion_tokens"),
    "total_cost_usd": _sum("cost_usd"),
    "average_cost_usd": Measure(["cost_usd", "requests"], "toFloat64(cost_usd) / requests"),
    # A line of a batch has no latency of its own.
    "average_latency_ms": Measure(["latency_sum_ms", "requests", "batched"], "latency_sum_ms / (requests - batched)"),
    "tokens_per_second": Measure(["completion_tokens", "latency_sum_ms"], "completion_tokens * 1000 / latency_sum_ms"),
    "p50_latency_ms": _percentile("latency_q", 1),
    "p95_latency_ms": _percentile("latency_q", 2),
    "p99_latency_ms": _percentile("latency_q", 3),
    "p50_ttft_ms": _percentile("ttft_q", 1),
    "p95_ttft_ms": _percentile("ttft_q", 2),
    "p99_ttft_ms": _percentile("ttft_q", 3),
    "models_used": _sum("models"),
    "session_count": _sum("session_set"),
    "first_seen": _sum("first_at"),
    "last_seen": _sum("last_at"),
}


@dataclass(frozen=True)
class Costs:
    request_count: int
    total_tokens: int
    total_cost_usd: Decimal


@dataclass(frozen=True)
class TokenCosts(Costs):
    """The same with its tokens by kind, and the number of requests whose cost is unknown."""

    input_tokens: int
    output_tokens: int
    unpriced_request_count: int


@dataclass(frozen=True)
class Sums(Costs):
    """Shares and averages are 0 without requests."""

    error_count: int
    error_rate: float
    cancelled_count: int
    unpriced_request_count: int
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    average_latency_ms: float


@dataclass(frozen=True)
class TimedSums(Sums):
    """With percentiles, which are None without samples."""

    p50_latency_ms: float | None
    p95_latency_ms: float | None
    p99_latency_ms: float | None
    p50_ttft_ms: float | None
    p95_ttft_ms: float | None
    p99_ttft_ms: float | None


BY_COST = "ORDER BY cost_usd DESC, requests DESC"
"""The order of all pages by cost, which the keys follow."""
BEGINS = {"start": "toDateTime64(start, 6, 'UTC')"}
"""The column of an interval's beginning, whatever type its rollup gives it."""


def summed(
    row: type[Row],
    source: Source,
    *,
    name: str,
    by: Iterable[str] = (),
    inner: Mapping[str, str] | None = None,
    outer: Mapping[str, str] | None = None,
    also: Iterable[str] = (),
    tail: str = "",
    values: Mapping[str, Any] | None = None,
    run: Callable[..., list[Row]] | None = None,
    settings: Mapping[str, Any] = PLANNED,
) -> list[Row]:
    """A row for each of the keys `by` that has requests; without keys, always one row.

    A field of the row is a figure of MEASURES, a key, one of the further sums `inner` over rows `f` of the source, or
    one of the expressions `outer` over all of these. `tail` has the conditions, order and limit, and names sums by
    their own names (`cost_usd`); `also` names those that no figure of the row needs. A float without anything to
    measure is 0, or None if the field may be None.
    """
    of_figures, shown = _columns(row, frozenset(outer or ()))
    sums, keys = list(dict.fromkeys([*of_figures, *also])), list(by)
    found, params = source(figures=sums)
    below = {**{key: f"f.{key}" for key in keys}, **(inner or {}), **{one: FIGURES[one].total for one in sums}}
    grouped = f"GROUP BY {', '.join(f'f.{key}' for key in keys)}" if keys else ""
    sql = (
        f"SELECT {_named({**shown, **(outer or {})})} FROM (SELECT {_named(below)} FROM {found} AS f {grouped}) {tail}"
    )
    return (run or client.query)(sql, {**params, **(values or {})}, row=row, name=name, database_settings=settings)


def count_keys(source: Source, by: Iterable[str], *, name: str, run: Callable[..., list[int]] | None = None) -> int:
    found, params = source(figures=())
    sql = f"SELECT uniqExact({', '.join(f'f.{key}' for key in by)}) FROM {found} AS f"
    return (run or client.query)(sql, params, row=int, name=name, database_settings=PLANNED)[0]


def _named(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def nothing(row: type[Row], **keys: Any) -> Row:
    figures = {name: hint for name, hint in get_type_hints(row).items() if name in MEASURES}
    return row(**{**{name: None if _may_be_none(hint) else hint(0) for name, hint in figures.items()}, **keys})


@cache
def _columns(row: type[DataclassInstance], elsewhere: Set[str]) -> tuple[Iterable[str], Mapping[str, str]]:
    hints = get_type_hints(row)
    names = [field.name for field in fields(row) if field.name not in elsewhere]
    sums = dict.fromkeys(one for name in names if name in MEASURES for one in MEASURES[name].sums)
    return sums, {name: _sql(name, hints[name]) for name in names}


def _sql(name: str, hint: Any) -> str:
    if name not in MEASURES:
        return name
    sql = MEASURES[name].sql
    if hint is float:
        return f"ifNotFinite(toFloat64({sql}), 0)"
    return f"if(isFinite({sql}), toFloat64({sql}), NULL)" if _may_be_none(hint) else sql


def _may_be_none(hint: Any) -> bool:
    return bool(hint == float | None)
