"""Sums up both arms of a rollout for display, and the usual latency and cost of a version."""

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
    FAILED,
    HISTOGRAMS,
    HIT,
    IN_ARM,
    IN_TIME,
    JUDGED,
    LONG_WAIT_MS,
    NOT_OF_THE_VERSION,
    PRICED,
    REASONS,
    TARGET,
    UNANSWERED,
)


@dataclass(frozen=True)
class ArmTotals:
    """The totals of one arm in a range of time, with the `substituted` requests, which were allocated by another unit.

    `requests` are the `cache_hits`, those `left_out` because no version has a part in their outcome, and the others, of
    which `unanswered` gave their users no proper answer, by `reasons` (see `outcomes`). `counted` are those of the
    others whose outcome the service or a provider answers for, and `errors` those of them that failed. Latencies are 0
    without answers; `cost_usd` is the sum of the known costs, `priced_cost_usd` that of the `priced` requests:
    answered, and no cache hits.
    """

    variant: str
    requests: int = 0
    counted: int = 0
    errors: int = 0
    substituted: int = 0
    answered: int = 0
    average_latency_ms: float = 0.0
    p95_latency_ms: float = 0.0
    priced: int = 0
    unpriced: int = 0
    cost_usd: Decimal = Decimal(0)
    priced_cost_usd: Decimal = Decimal(0)
    cache_hits: int = 0
    left_out: int = 0
    unanswered: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class UsualValues:
    """The histograms of answered requests by latency and by cost."""

    latency: Mapping[int, int]
    cost: Mapping[int, int]


_TOTALS = f"""
SELECT
    toString(r.variant) AS variant, count() AS requests, countIf({JUDGED}) AS counted,
    countIf({FAILED}) AS errors, countIf(r.alloc_fallback) AS substituted,
    countIf({ANSWERED}) AS answered,
    if(answered = 0, 0, sumIf(toUInt64(r.latency_ms), {ANSWERED}) / answered) AS average_latency_ms,
    if(answered = 0, 0, toFloat64(quantileTDigestIf(0.95)(r.latency_ms, {ANSWERED}))) AS p95_latency_ms,
    countIf({PRICED}) AS priced, countIf(NOT r.cost_known) AS unpriced,
    sum(toDecimal128(r.cost_usd, 10)) AS cost_usd,
    sumIf(toDecimal128(r.cost_usd, 10), {PRICED}) AS priced_cost_usd,
    countIf({HIT}) AS cache_hits, countIf({NOT_OF_THE_VERSION}) AS left_out, countIf({UNANSWERED}) AS unanswered,
    {REASONS} AS reasons
FROM requests AS r
WHERE {IN_ARM} AND {IN_TIME}
GROUP BY variant ORDER BY variant
"""

_USUAL = f"""
SELECT {HISTOGRAMS}
FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.prompt_config_id = {{config:UUID}}
    AND r.prompt_version = {{version:UInt32}} AND {IN_TIME}
"""


def arm_totals(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime) -> Mapping[str, ArmTotals]:
    """Returns the totals by arm of the requests in this range; an arm without requests has zeros."""
    params = {"project": project_id, "rollout": rollout_id, "start": start, "end": end, "long_wait_ms": LONG_WAIT_MS}
    rows = client.query(_TOTALS, params, row=ArmTotals, name="variants.totals")
    return {variant: ArmTotals(variant) for variant in (TARGET, BASELINE)} | {row.variant: row for row in rows}


def usual_values(
    project_id: UUID, config_id: UUID, version: int, start: datetime, end: datetime, *, log_ratio: float
) -> UsualValues:
    """Returns the usual latency and cost of one version of a prompt config."""
    params: dict[str, Any] = {"project": project_id, "config": config_id, "version": version}
    times = {"start": start, "end": end, "log_ratio": log_ratio}
    return client.query(_USUAL, {**params, **times}, row=UsualValues, name="variants.usual")[0]
