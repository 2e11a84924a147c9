"""What happened in a project between two times, in a dozen figures?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client

TOP_MODELS = 5


@dataclass(frozen=True)
class ModelTotals:
    model: str
    requests: int
    errors: int
    unpriced: int
    tokens: int
    cost_usd: Decimal
    latency_sum_ms: int


@dataclass(frozen=True)
class Overview:
    """`average_latency_ms` and `error_rate` (0 to 1) are 0 without requests; costs are those that are known."""

    requests: int
    sessions: int
    users: int
    unpriced: int
    tokens: int
    cost_usd: Decimal
    error_rate: float
    average_latency_ms: float
    top_models: Sequence[ModelTotals]


@dataclass(frozen=True)
class _Distinct:
    users: int
    sessions: int


# Whole hours from the rollup, what sticks out at both ends from the rows: exact for any range, and small to read.
_BY_MODEL = """
SELECT
    model, sum(requests) AS requests, sum(errors) AS errors, sum(unpriced) AS unpriced, sum(tokens) AS tokens,
    sum(cost_usd) AS cost_usd, sum(latency_sum_ms) AS latency_sum_ms
FROM (
    SELECT
        toString(h.model) AS model, h.requests AS requests, h.errors AS errors, h.unpriced AS unpriced,
        h.prompt_tokens + h.completion_tokens AS tokens, h.cost_usd AS cost_usd, h.latency_sum_ms AS latency_sum_ms
    FROM requests_hourly AS h
    WHERE h.project_id = {project:UUID} AND h.hour >= {from:DateTime('UTC')} AND h.hour < {until:DateTime('UTC')}
    UNION ALL
    SELECT
        toString(r.model), 1, r.outcome IN ('error', 'interrupted'), NOT r.cost_known,
        toUInt64(r.prompt_tokens) + r.completion_tokens, toDecimal128(r.cost_usd, 10), r.latency_ms
    FROM requests AS r
    WHERE r.project_id = {project:UUID}
        AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}
        AND (r.ts < {from:DateTime('UTC')} OR r.ts >= {until:DateTime('UTC')})
)
GROUP BY model ORDER BY requests DESC, model
"""
# The same with whole days.
_DISTINCT = """
SELECT uniqExactIf(user_id, user_id != '') AS users, uniqMerge(sessions) AS sessions
FROM (
    SELECT d.user_id AS user_id, d.sessions AS sessions
    FROM users_daily AS d
    WHERE d.project_id = {project:UUID} AND d.day >= {from:Date} AND d.day < {until:Date}
    UNION ALL
    SELECT r.user_id, uniqStateIf(r.session_id, r.session_id != '')
    FROM requests AS r
    WHERE r.project_id = {project:UUID}
        AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}
        AND (r.ts < toDateTime({from:Date}, 'UTC') OR r.ts >= toDateTime({until:Date}, 'UTC'))
    GROUP BY r.user_id
)
"""


def get_overview(project_id: UUID, start: datetime, end: datetime) -> Overview:
    """Figures of requests that arrived from `start` to `end`, both included."""
    params: dict[str, Any] = {"project": project_id, "start": start, "end": end}
    first, last = _whole(start, end, timedelta(hours=1))
    models = client.query(_BY_MODEL, {**params, "from": first, "until": last}, row=ModelTotals, name="overview.models")
    first, last = _whole(start, end, timedelta(days=1))
    days = {"from": first.date(), "until": last.date()}
    distinct = client.query(_DISTINCT, {**params, **days}, row=_Distinct, name="overview.distinct")[0]
    requests = sum(item.requests for item in models)
    return Overview(
        requests=requests,
        sessions=distinct.sessions,
        users=distinct.users,
        unpriced=sum(item.unpriced for item in models),
        tokens=sum(item.tokens for item in models),
        cost_usd=sum((item.cost_usd for item in models), Decimal(0)),
        error_rate=sum(item.errors for item in models) / requests if requests else 0.0,
        average_latency_ms=sum(item.latency_sum_ms for item in models) / requests if requests else 0.0,
        top_models=[item for item in models if item.model][:TOP_MODELS],
    )


def _whole(start: datetime, end: datetime, unit: timedelta) -> tuple[datetime, datetime]:
    """The first and the last border of `unit` between two times; twice the same when there is no whole unit."""
    epoch = datetime(1970, 1, 1, tzinfo=start.tzinfo)
    first = epoch + -((epoch - start) // unit) * unit
    last = epoch + ((end - epoch) // unit) * unit
    return (first, last) if first < last else (first, first)
