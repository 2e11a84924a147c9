"""Sums up all requests of a range of time, or those of each operation, with percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import DAYS, HOURS, IS_EARLIER, PLANNED, Span, same, totals, union


@dataclass(frozen=True)
class SumsRow:
    """The sums of some requests, of which `batched` are lines of batches, without a latency."""

    requests: int
    batched: int
    errors: int
    cancelled: int
    unpriced: int
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: Decimal
    latency_sum_ms: int


@dataclass(frozen=True)
class TotalsRow(SumsRow):
    """The figures of a range. `latency_q` and `ttft_q` are the 50th, 95th and 99th percentile in ms, the latter of the
    `streamed` requests whose first token was timed; without samples their values have no meaning."""

    latency_q: Sequence[float]
    streamed: int
    ttft_q: Sequence[float]


@dataclass(frozen=True)
class OperationRow(TotalsRow):
    """The figures of one operation."""

    operation: str


SUMS = tuple(field.name for field in fields(SumsRow))
FIGURES = tuple(field.name for field in fields(TotalsRow))
_NOTHING = TotalsRow(0, 0, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0, (), 0, ())
# Single requests are grouped before they are put beside the rows of the rollups.
_PROVIDER = {"provider": same("toString(t.provider)")}
_OPERATION = {"operation": same("if(t.operation = '', 'chat', toString(t.operation))")}


def get_totals(project_id: UUID, start: datetime, end: datetime, *, operation: str = "") -> TotalsRow:
    """Returns the figures of the requests that arrived from `start` to `end`, both included."""
    source, params = union([DAYS, HOURS], start, end, keys=_PROVIDER, figures=FIGURES, operation=operation)
    sql = f"SELECT {totals(*FIGURES)} FROM {source} AS f"
    values = {**params, "project": project_id}
    [row] = client.query(sql, values, row=TotalsRow, name="totals", database_settings=PLANNED)
    return row


@dataclass(frozen=True)
class _PeriodRow(TotalsRow):
    is_earlier: int


def get_totals_compared(project_id: UUID, now: Span, earlier: Span) -> tuple[TotalsRow, TotalsRow]:
    """Returns the figures of two ranges, both ends of each included, the second of which ends before the first
    begins."""
    keys = {**_PROVIDER, "is_earlier": IS_EARLIER}
    source, params = union([DAYS, HOURS], *now, keys=keys, figures=FIGURES, earlier=earlier)
    sql = f"SELECT f.is_earlier AS is_earlier, {totals(*FIGURES)} FROM {source} AS f GROUP BY f.is_earlier"
    values = {**params, "project": project_id}
    rows = client.query(sql, values, row=_PeriodRow, name="totals.compared", database_settings=PLANNED)
    found = {row.is_earlier: row for row in rows}
    return found.get(0, _NOTHING), found.get(1, _NOTHING)


def list_operations(project_id: UUID, start: datetime, end: datetime) -> Sequence[OperationRow]:
    """Returns all operations by falling cost, then falling requests, then name."""
    source, params = union([DAYS, HOURS], start, end, keys=_OPERATION, figures=FIGURES)
    sql = (
        f"SELECT f.operation AS operation, {totals(*FIGURES)} FROM {source} AS f"
        " GROUP BY f.operation ORDER BY cost_usd DESC, requests DESC, operation"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=OperationRow, name="operations", database_settings=PLANNED)
