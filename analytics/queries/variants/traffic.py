"""Measures the requests of a prompt config that a rollout of it would compare, whatever version served them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.variants.outcomes import (
    COUNTING,
    IN_TIME,
    LONG_WAIT_MS,
    NO_ANSWER,
    OF_CLIENTS,
    histograms,
)


@dataclass(frozen=True)
class ConfigTraffic:
    """The requests of a prompt config in a range of time, without cache hits and what no version affects.

    `unanswered` of the `requests` gave their users no proper answer; `first_at` is the time of the first of all.
    `latency` and `cost` are histograms of the answered ones, as those of `UsualValues`.
    """

    requests: int = 0
    unanswered: int = 0
    first_at: datetime | None = None
    latency: Mapping[int, int] = field(default_factory=dict)
    cost: Mapping[int, int] = field(default_factory=dict)


_SQL = f"""
SELECT
    countIf({COUNTING}) AS requests, countIf({COUNTING} AND {NO_ANSWER}) AS unanswered,
    minOrNull(r.ts) AS first_at, {histograms()}
FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.prompt_config_id = {{config:UUID}} AND {IN_TIME}
    AND {OF_CLIENTS}
"""


def config_traffic(
    project_id: UUID, config_id: UUID, start: datetime, end: datetime, *, log_ratio: float
) -> ConfigTraffic:
    """Returns the traffic from `start` up to, not including, `end`. Raises AnalyticsUnavailableError and
    AnalyticsLimitError."""
    params = {"project": project_id, "config": config_id, "start": start, "end": end}
    more = {"log_ratio": log_ratio, "long_wait_ms": LONG_WAIT_MS}
    return client.query(_SQL, {**params, **more}, row=ConfigTraffic, name="variants.config_traffic")[0]
