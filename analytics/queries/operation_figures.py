"""Summarizes each operation in a range of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.range_totals import FIGURES, TotalsRow
from analytics.queries.rollup_ranges import DAYS, HOURS, PLANNED, same, totals, union


@dataclass(frozen=True)
class OperationRow(TotalsRow):
    """The figures of one operation."""

    operation: str


_KEYS = {"operation": same("if(t.operation = '', 'chat', toString(t.operation))")}


def list_operations(project_id: UUID, start: datetime, end: datetime) -> Sequence[OperationRow]:
    """Returns all operations by falling cost, then falling requests, then name."""
    source, params = union([DAYS, HOURS], start, end, keys=_KEYS, figures=FIGURES)
    sql = (
        f"SELECT f.operation AS operation, {totals(*FIGURES)} FROM {source} AS f"
        " GROUP BY f.operation ORDER BY cost_usd DESC, requests DESC, operation"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=OperationRow, name="operations", database_settings=PLANNED)
