"""Sums the cost of each model in a range of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import PLANNED, plain_rollups, same, totals, union


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


_KEYS = {"model": same("toString(t.model)"), "provider": same("toString(t.provider)")}
_FIGURES = ("requests", "unpriced", "prompt_tokens", "completion_tokens", "cost_usd")


def list_model_costs(
    project_id: UUID, start: datetime, end: datetime, *, operation: str = ""
) -> Sequence[ModelCostRow]:
    """Returns all models by falling cost, then falling requests, then name; not in pages, since shares need the sum."""
    source, params = union(plain_rollups(start, end), start, end, keys=_KEYS, figures=_FIGURES, operation=operation)
    providers = "arraySort(groupUniqArrayIf(f.provider, f.provider != '')) AS providers"
    sql = (
        f"SELECT f.model AS model, {providers}, {totals(*_FIGURES)} FROM {source} AS f"
        " GROUP BY f.model ORDER BY cost_usd DESC, requests DESC, model"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=ModelCostRow, name="costs.models", database_settings=PLANNED)
