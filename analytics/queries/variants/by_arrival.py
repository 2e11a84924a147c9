"""Counts the minutes of a rollout by the time at which its requests came, which the first formula judges.

A minute is judged some time after it closed; requests that are recorded later are not. Cache hits count as requests
here, while faults of the client and requests that it cancelled do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.variants.outcomes import (
    ANSWERED,
    BAD,
    COST,
    COUNTED,
    HISTOGRAMS,
    IN_ARM,
    IN_TIME,
    PRICED,
    bin_of,
)
from analytics.queries.variants.units import UnitLimits, UnitSums


@dataclass(frozen=True)
class ArmMinute:
    """One arm of one stage in one minute, which is Unix time divided by 60.

    `latency` and `cost` count answered requests by bin, in ms and 10^-10 US dollars, cache hits left out and, of cost,
    what has no price. `latency_ms` and `cost_usd` are their sums.
    """

    minute: int
    stage: int
    variant: str
    requests: int
    errors: int
    allocated: int
    latency: Mapping[int, int]
    latency_ms: int
    cost: Mapping[int, int]
    cost_usd: Decimal


@dataclass(frozen=True)
class NewUnits:
    """The number of allocation units with their first request in the rollout in this minute."""

    minute: int
    stage: int
    variant: str
    units: int


_ALLOCATED = f"{IN_ARM} AND NOT r.alloc_fallback AND {IN_TIME}"

_MINUTES = f"""
SELECT
    intDiv(toUnixTimestamp(r.ts), 60) AS minute, r.rollout_stage AS stage, toString(r.variant) AS variant,
    countIf({COUNTED}) AS requests, countIf({COUNTED} AND {BAD}) AS errors, count() AS allocated, {HISTOGRAMS},
    sumIf(toUInt64(r.latency_ms), {ANSWERED}) AS latency_ms,
    sumIf(toDecimal128(r.cost_usd, 10), {PRICED}) AS cost_usd
FROM requests AS r
WHERE {_ALLOCATED}
GROUP BY minute, stage, variant ORDER BY minute, stage, variant
"""

_NEW_UNITS = f"""
SELECT minute, stage, variant, count() AS units
FROM (
    SELECT
        intDiv(toUnixTimestamp(min(r.ts)), 60) AS minute, argMin(r.rollout_stage, r.ts) AS stage,
        argMin(toString(r.variant), r.ts) AS variant
    FROM requests AS r
    WHERE {_ALLOCATED}
    GROUP BY r.alloc_unit
)
WHERE minute >= {{since:UInt32}}
GROUP BY minute, stage, variant ORDER BY minute, stage, variant
"""

_UNIT_SUMS = f"""
SELECT
    metric, sum(n) AS requests, sum(n * n) AS requests_squared, sum(x) AS total, sum(x * x) AS total_squared,
    sum(x * n) AS cross, sum(q) AS values_squared
FROM (
    SELECT
        toFloat64(countIf({COUNTED})) AS n_counted, toFloat64(countIf({COUNTED} AND {BAD})) AS x_errors,
        toFloat64(countIf({ANSWERED})) AS n_answered,
        toFloat64(countIf({ANSWERED} AND {bin_of("r.latency_ms")} > {{slow_bin:UInt32}})) AS x_slow,
        sumIf(least(toFloat64(r.latency_ms), {{latency_cap:Float64}}), {ANSWERED}) AS x_latency,
        sumIf(pow(least(toFloat64(r.latency_ms), {{latency_cap:Float64}}), 2), {ANSWERED}) AS q_latency,
        toFloat64(countIf({PRICED})) AS n_priced,
        sumIf(least({COST}, {{cost_cap:Float64}}), {PRICED}) AS x_cost,
        sumIf(pow(least({COST}, {{cost_cap:Float64}}), 2), {PRICED}) AS q_cost
    FROM requests AS r
    WHERE {_ALLOCATED} AND r.variant = 'baseline'
    GROUP BY r.alloc_unit
)
ARRAY JOIN
    ['errors', 'slow', 'latency', 'cost'] AS metric, [n_counted, n_answered, n_answered, n_priced] AS n,
    [x_errors, x_slow, x_latency, x_cost] AS x, [x_errors, x_slow, q_latency, q_cost] AS q
GROUP BY metric
"""


def arm_minutes(
    project_id: UUID, rollout_id: UUID, start: datetime, end: datetime, *, log_ratio: float
) -> list[ArmMinute]:
    """Returns the minutes from `start` up to, not including, `end`; those without requests are left out. Bin k ≥ 1 of a
    histogram is around exp((k - 1) log_ratio) units, bin 0 is nothing."""
    params = {**_rollout(project_id, rollout_id, start, end), "log_ratio": log_ratio}
    return client.query(_MINUTES, params, row=ArmMinute, name="variants.minutes")


def new_units(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime, *, since: int) -> list[NewUnits]:
    """Returns the units first seen from the minute `since` on, of a rollout that began at `start`."""
    params = {**_rollout(project_id, rollout_id, start, end), "since": since}
    return client.query(_NEW_UNITS, params, row=NewUnits, name="variants.units")


def unit_sums(
    project_id: UUID, rollout_id: UUID, start: datetime, end: datetime, *, limits: UnitLimits, log_ratio: float
) -> Mapping[str, UnitSums]:
    """Returns the sums by `errors`, `slow`, `latency` and `cost`; empty when the baseline had no requests."""
    params = {
        **_rollout(project_id, rollout_id, start, end),
        "log_ratio": log_ratio,
        "slow_bin": limits.slow_bin,
        "latency_cap": limits.latency_cap_ms,
        "cost_cap": limits.cost_cap,
    }
    return {row.metric: row for row in client.query(_UNIT_SUMS, params, row=UnitSums, name="variants.unit_sums")}


def _rollout(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime) -> dict[str, Any]:
    return {"project": project_id, "rollout": rollout_id, "start": start, "end": end}
