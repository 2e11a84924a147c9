"""Summarizes each model at each provider in a range of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import DAYS, HOURS, PLANNED, same, totals, union


@dataclass(frozen=True)
class ModelRow:
    """A model at a provider. `latency_q` and `ttft_q` are the 50th, 95th and 99th percentile in ms, the latter of the
    `streamed` requests whose first token was timed. Requests without a model are counted under empty names."""

    model: str
    provider: str
    requests: int
    errors: int
    cancelled: int
    unpriced: int
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: Decimal
    latency_sum_ms: int
    latency_q: list[float]
    streamed: int
    ttft_q: list[float]


@dataclass(frozen=True)
class _Count:
    models: int


_KEYS = {"model": same("toString(t.model)"), "provider": same("toString(t.provider)")}
_FIGURES = (
    "requests", "errors", "cancelled", "unpriced", "prompt_tokens", "completion_tokens", "cache_read_tokens",
    "cache_write_tokens", "cost_usd", "latency_sum_ms", "latency_q", "streamed", "ttft_q",
)  # fmt: skip


def list_models(
    project_id: UUID, start: datetime, end: datetime, *, limit: int, offset: int, operation: str = ""
) -> tuple[int, list[ModelRow]]:
    """Returns the number of models and one page of them, by falling cost, then falling requests, then name."""
    source, params = union([DAYS, HOURS], start, end, keys=_KEYS, figures=_FIGURES, operation=operation)
    params |= {"project": project_id, "limit": limit, "offset": offset}
    order = "ORDER BY cost_usd DESC, requests DESC, model, provider LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = (
        f"SELECT f.model AS model, f.provider AS provider, {totals(*_FIGURES)} FROM {source} AS f"
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
