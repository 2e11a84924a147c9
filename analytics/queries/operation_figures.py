"""Summarizes each operation in a range of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import DAYS, HOURS, PLANNED, same, totals, union


@dataclass(frozen=True)
class OperationRow:
    """An operation. `latency_q` and `ttft_q` are the 50th, 95th and 99th percentile in ms, the latter of the `streamed`
    requests whose first token was timed."""

    operation: str
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


_KEYS = {"operation": same("if(t.operation = '', 'chat', toString(t.operation))")}
_FIGURES = (
    "requests", "errors", "cancelled", "unpriced", "prompt_tokens", "completion_tokens", "cache_read_tokens",
    "cache_write_tokens", "cost_usd", "latency_sum_ms", "latency_q", "streamed", "ttft_q",
)  # fmt: skip


def list_operations(project_id: UUID, start: datetime, end: datetime) -> Sequence[OperationRow]:
    """Returns all operations by falling cost, then falling requests, then name."""
    source, params = union([DAYS, HOURS], start, end, keys=_KEYS, figures=_FIGURES)
    sql = (
        f"SELECT f.operation AS operation, {totals(*_FIGURES)} FROM {source} AS f"
        " GROUP BY f.operation ORDER BY cost_usd DESC, requests DESC, operation"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=OperationRow, name="operations", database_settings=PLANNED)
