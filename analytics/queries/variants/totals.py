from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.variants.outcomes import (
    ANSWERED,
    BASELINE,
    CACHE_HIT,
    COUNTING,
    IN_TIME,
    JUDGED,
    LEFT_OUT_BY_REASON,
    LONG_WAIT_MS,
    NO_ANSWER,
    OF_CLIENTS,
    OF_ROLLOUT,
    OTHER_UNIT,
    PRICED,
    REASONS,
    REQUEST,
    SIGNALS,
    TARGET,
    counts,
    histograms,
)


@dataclass(frozen=True)
class ArmTotals:
    """The totals of one arm in a range of time.

    `requests` are all that got the arm's version: those `left_out`, by reason (see `outcomes.LEFT_OUT`), the
    `uncompared`, whose question was in the cache, and the `compared`, of which `unanswered` gave their users no proper
    answer, by `reasons`. `counted` are the compared ones whose outcome the service or a provider answers for, and
    `errors` those of them that failed. Of the `answered`, `contract`, `truncated`, `fallback` and `empty` have the
    fault of that name; the clients of `stopped` ones left after the first output. Latencies are 0 without answers;
    `cost_usd` and `unpriced` are of all requests, `priced_cost_usd` is of the `priced` ones among the answered.
    """

    variant: str
    requests: int = 0
    compared: int = 0
    uncompared: int = 0
    counted: int = 0
    errors: int = 0
    answered: int = 0
    contract: int = 0
    truncated: int = 0
    fallback: int = 0
    empty: int = 0
    stopped: int = 0
    average_latency_ms: float = 0.0
    p95_latency_ms: float = 0.0
    priced: int = 0
    unpriced: int = 0
    cost_usd: Decimal = Decimal(0)
    priced_cost_usd: Decimal = Decimal(0)
    unanswered: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def cache_hits(self) -> int:
        return self.left_out.get(CACHE_HIT, 0)

    @property
    def substituted(self) -> int:
        """The requests that were allocated by another unit than the rollout asks for."""
        return self.left_out.get(OTHER_UNIT, 0)


@dataclass(frozen=True)
class UsualValues:
    """The usual values of a prompt config. `latency` and `cost` are the histograms of one version's answered requests;
    of the `requests` of all versions, `unanswered` gave their users no proper answer."""

    latency: Mapping[int, int] = field(default_factory=dict)
    cost: Mapping[int, int] = field(default_factory=dict)
    requests: int = 0
    unanswered: int = 0


_TOTALS = f"""
SELECT
    toString(r.variant) AS variant, count() AS requests, countIf({REQUEST}) AS compared,
    countIf({JUDGED}) AS counted, {counts("uncompared", "errors", *SIGNALS)},
    if(answered = 0, 0, sumIf(toUInt64(r.latency_ms), {ANSWERED}) / answered) AS average_latency_ms,
    if(answered = 0, 0, toFloat64(quantileTDigestIf(0.95)(r.latency_ms, {ANSWERED}))) AS p95_latency_ms,
    {counts("priced", "unanswered")}, countIf(NOT r.cost_known) AS unpriced,
    sum(toDecimal128(r.cost_usd, 10)) AS cost_usd,
    sumIf(toDecimal128(r.cost_usd, 10), {PRICED}) AS priced_cost_usd,
    {REASONS} AS reasons, {LEFT_OUT_BY_REASON} AS left_out
FROM requests AS r
WHERE {OF_ROLLOUT} AND {IN_TIME}
GROUP BY variant ORDER BY variant
"""

_USUAL = f"""
SELECT
    countIf({COUNTING} AND {OF_CLIENTS}) AS requests,
    countIf({COUNTING} AND {NO_ANSWER} AND {OF_CLIENTS}) AS unanswered,
    {histograms("r.prompt_version = {version:UInt32}")}
FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.prompt_config_id = {{config:UUID}} AND {IN_TIME}
"""


def arm_totals(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime) -> Mapping[str, ArmTotals]:
    params = {"project": project_id, "rollout": rollout_id, "start": start, "end": end, "long_wait_ms": LONG_WAIT_MS}
    rows = client.query(_TOTALS, params, row=ArmTotals, name="variants.totals")
    return {variant: ArmTotals(variant) for variant in (TARGET, BASELINE)} | {row.variant: row for row in rows}


def usual_values(
    project_id: UUID, config_id: UUID, version: int, start: datetime, end: datetime, *, log_ratio: float
) -> UsualValues:
    params: dict[str, Any] = {"project": project_id, "config": config_id, "version": version}
    more = {"start": start, "end": end, "log_ratio": log_ratio, "long_wait_ms": LONG_WAIT_MS}
    return client.query(_USUAL, {**params, **more}, row=UsualValues, name="variants.usual")[0]


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


_TRAFFIC = f"""
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
    return client.query(_TRAFFIC, {**params, **more}, row=ConfigTraffic, name="variants.config_traffic")[0]
