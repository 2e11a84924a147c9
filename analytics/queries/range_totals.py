"""Sums up all requests of a range of time, with percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import DAYS, HOURS, PLANNED, same, totals, union


@dataclass(frozen=True)
class TotalsRow:
    """The figures of a range. `latency_q` and `ttft_q` are the 50th, 95th and 99th percentile in ms, the latter of the
    `streamed` requests whose first token was timed; without samples their values have no meaning."""

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
    latency_q: Sequence[float]
    streamed: int
    ttft_q: Sequence[float]


# Single requests are grouped before they are put beside the rows of the rollups.
_KEYS = {"provider": same("toString(t.provider)")}
FIGURES = (
    "requests", "errors", "cancelled", "unpriced", "prompt_tokens", "completion_tokens", "cache_read_tokens",
    "cache_write_tokens", "cost_usd", "latency_sum_ms", "latency_q", "streamed", "ttft_q",
)  # fmt: skip


def get_totals(project_id: UUID, start: datetime, end: datetime, *, operation: str = "") -> TotalsRow:
    """Returns the figures of the requests that arrived from `start` to `end`, both included."""
    source, params = union([DAYS, HOURS], start, end, keys=_KEYS, figures=FIGURES, operation=operation)
    sql = f"SELECT {totals(*FIGURES)} FROM {source} AS f"
    values = {**params, "project": project_id}
    [row] = client.query(sql, values, row=TotalsRow, name="totals", database_settings=PLANNED)
    return row
