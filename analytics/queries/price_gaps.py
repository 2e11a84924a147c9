"""Finds the models whose requests had no known price in a range of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import PLANNED, plain_rollups, same, totals, union


@dataclass(frozen=True)
class PriceGapRow:
    """A model at a provider. `unpriced` of its `requests` have an unknown cost; tokens are of all its requests."""

    provider: str
    model: str
    requests: int
    unpriced: int
    prompt_tokens: int
    completion_tokens: int


_KEYS = {"provider": same("toString(t.provider)"), "model": same("toString(t.model)")}
_FIGURES = ("requests", "unpriced", "prompt_tokens", "completion_tokens")


def list_price_gaps(project_id: UUID, start: datetime, end: datetime, *, operation: str = "") -> Sequence[PriceGapRow]:
    """Returns all such models by falling number of requests without a price, then by name."""
    source, params = union(
        plain_rollups(start, end),
        start,
        end,
        keys=_KEYS,
        figures=_FIGURES,
        where="t.model != ''",
        operation=operation,
    )
    sql = (
        f"SELECT f.provider AS provider, f.model AS model, {totals(*_FIGURES)} FROM {source} AS f"
        " GROUP BY f.provider, f.model HAVING unpriced > 0 ORDER BY unpriced DESC, provider, model"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=PriceGapRow, name="spend.gaps", database_settings=PLANNED)
