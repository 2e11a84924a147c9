"""Summarizes a project between two times in a dozen figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.distinct import count_distinct
from analytics.queries.parallel import both
from analytics.queries.rollup_ranges import PLANNED, plain_rollups, same, totals, union

TOP_MODELS = 5


@dataclass(frozen=True)
class ModelTotalsRow:
    model: str
    requests: int
    batched: int
    errors: int
    cancelled: int
    unpriced: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal
    latency_sum_ms: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class OverviewRow:
    """The overview of a project. `average_latency_ms`, which leaves out lines of batches, and `error_rate` (0 to 1) are
    0 without requests; costs are the known ones."""

    requests: int
    sessions: int
    users: int
    errors: int
    cancelled: int
    unpriced: int
    tokens: int
    cost_usd: Decimal
    error_rate: float
    average_latency_ms: float
    top_models: Sequence[ModelTotalsRow]


_MODEL = {"model": same("toString(t.model)")}
_FIGURES = (
    "requests", "batched", "errors", "cancelled", "unpriced", "prompt_tokens", "completion_tokens", "cost_usd",
    "latency_sum_ms",
)  # fmt: skip


def get_overview(project_id: UUID, start: datetime, end: datetime, *, operation: str = "") -> OverviewRow:
    """Returns the figures of the requests that arrived from `start` to `end`, both included."""
    models, distinct = both(
        partial(_models, project_id, start, end, operation),
        partial(count_distinct, project_id, start, end, operation=operation),
    )
    requests = sum(item.requests for item in models)
    timed = requests - sum(item.batched for item in models)
    errors = sum(item.errors for item in models)
    return OverviewRow(
        requests=requests,
        sessions=distinct.sessions,
        users=distinct.users,
        errors=errors,
        cancelled=sum(item.cancelled for item in models),
        unpriced=sum(item.unpriced for item in models),
        tokens=sum(item.tokens for item in models),
        cost_usd=sum((item.cost_usd for item in models), Decimal(0)),
        error_rate=errors / requests if requests else 0.0,
        average_latency_ms=sum(item.latency_sum_ms for item in models) / timed if timed else 0.0,
        top_models=[item for item in models if item.model][:TOP_MODELS],
    )


def _models(project_id: UUID, start: datetime, end: datetime, operation: str) -> list[ModelTotalsRow]:
    source, params = union(plain_rollups(start, end), start, end, keys=_MODEL, figures=_FIGURES, operation=operation)
    sql = (
        f"SELECT f.model AS model, {totals(*_FIGURES)} FROM {source} AS f"
        " GROUP BY f.model ORDER BY requests DESC, model"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=ModelTotalsRow, name="overview.models", database_settings=PLANNED)
