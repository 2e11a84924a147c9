"""Summarizes each model at each provider in a range of time, and sums the cost of each model at all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.range_totals import FIGURES, TotalsRow
from analytics.queries.rollup_ranges import DAYS, HOURS, PLANNED, plain_rollups, same, totals, union


@dataclass(frozen=True)
class ModelRow(TotalsRow):
    """The figures of a model at a provider. Requests without a model are counted under empty names."""

    model: str
    provider: str


@dataclass(frozen=True)
class _Count:
    models: int


_KEYS = {"model": same("toString(t.model)"), "provider": same("toString(t.provider)")}


def list_models(
    project_id: UUID, start: datetime, end: datetime, *, limit: int, offset: int, operation: str = ""
) -> tuple[int, list[ModelRow]]:
    """Returns the number of models and one page of them, by falling cost, then falling requests, then name."""
    source, params = union([DAYS, HOURS], start, end, keys=_KEYS, figures=FIGURES, operation=operation)
    params |= {"project": project_id, "limit": limit, "offset": offset}
    order = "ORDER BY cost_usd DESC, requests DESC, model, provider LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = (
        f"SELECT f.model AS model, f.provider AS provider, {totals(*FIGURES)} FROM {source} AS f"
        f" GROUP BY f.model, f.provider {order}"
    )
    rows = client.query(sql, params, row=ModelRow, name="models.page", database_settings=PLANNED)
    if len(rows) < limit and (rows or not offset):
        return offset + len(rows), rows
    source, params = union([DAYS, HOURS], start, end, keys=_KEYS, operation=operation)
    sql = f"SELECT count() AS models FROM (SELECT f.model FROM {source} AS f GROUP BY f.model, f.provider)"
    values = {**params, "project": project_id}
    [count] = client.query(sql, values, row=_Count, name="models.count", database_settings=PLANNED)
    return count.models, rows


@dataclass(frozen=True)
class ModelCostRow:
    """The cost of one model at all its `providers`."""

    model: str
    providers: list[str]
    requests: int
    unpriced: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal


_COST_FIGURES = ("requests", "unpriced", "prompt_tokens", "completion_tokens", "cost_usd")


def list_model_costs(
    project_id: UUID, start: datetime, end: datetime, *, operation: str = ""
) -> Sequence[ModelCostRow]:
    """Returns all models by falling cost, then falling requests, then name; not in pages, since shares need the sum."""
    source, params = union(
        plain_rollups(start, end), start, end, keys=_KEYS, figures=_COST_FIGURES, operation=operation
    )
    providers = "arraySort(groupUniqArrayIf(f.provider, f.provider != '')) AS providers"
    sql = (
        f"SELECT f.model AS model, {providers}, {totals(*_COST_FIGURES)} FROM {source} AS f"
        " GROUP BY f.model ORDER BY cost_usd DESC, requests DESC, model"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=ModelCostRow, name="costs.models", database_settings=PLANNED)
