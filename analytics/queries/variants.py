"""How did the two arms of a rollout do, minute by minute?

A request belongs to an arm when it was allocated to it: not forced (`alloc_unit` 0) and not by a substitute of the unit
its rollout asks for (`alloc_fallback`). It is counted when the service answers for what became of it: not when the
client left, and not for what was the client's own fault. An error is a status of 500 or more, an interruption, a
timeout, a stream that broke, a refusal, or a provider's 400: with another prompt it might have been accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client

TARGET, BASELINE = "target", "baseline"


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
    """Allocation units whose first request in the rollout came in this minute."""

    minute: int
    stage: int
    variant: str
    units: int


@dataclass(frozen=True)
class ArmTotals:
    """One arm over a time, `substituted` requests included, whose allocation had to fall back on another unit.

    `requests` are all, `counted` those whose outcome is judged. Latencies are 0 where nothing was answered; `cost_usd`
    is the sum of what is known, `priced_cost_usd` that of the `priced`: answered, and no cache hits.
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


@dataclass(frozen=True)
class UnitSums:
    """Over the units u of the baseline, n_u the requests of one and x_u the sum of their values: Σn_u, Σn_u², Σx_u,
    Σx_u², Σx_u n_u, and the sum of the squared values of single requests."""

    metric: str
    requests: float
    requests_squared: float
    total: float
    total_squared: float
    cross: float
    values_squared: float


@dataclass(frozen=True)
class UnitLimits:
    """Where the values of `unit_sums` are cut, in ms and 10^-10 US dollars, and above which bin a request is slow."""

    latency_cap_ms: float
    slow_bin: int
    cost_cap: float


@dataclass(frozen=True)
class UsualValues:
    """Answered requests by bin of their latency, and by bin of their cost."""

    latency: Mapping[int, int]
    cost: Mapping[int, int]


# Columns are qualified (r.): an alias of the same name would win otherwise.
_ERROR = """(
    r.finish_reason = 'content_filter'
    OR (r.outcome IN ('error', 'interrupted')
        AND (r.status_code < 400 OR r.status_code >= 500
            OR r.error_code IN ('provider_rejected', 'context_length_exceeded', 'content_filter')))
)"""
_COUNTED = f"(r.outcome = 'success' OR (r.outcome != 'cancelled' AND {_ERROR}))"
_ANSWERED = "(r.outcome = 'success' AND r.cache_status != 'hit')"
_PRICED = f"({_ANSWERED} AND r.cost_known)"
_COST = "(toFloat64(r.cost_usd) * 1e10)"


def _bin(value: str) -> str:
    return f"if({value} <= 0, 0, toUInt32(1 + floor(log(greatest({value}, 1)) / {{log_ratio:Float64}} + 0.5)))"


_IN_TIME = "r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts < {end:DateTime64(6, 'UTC')}"
_IN_ARM = f"""r.project_id = {{project:UUID}} AND r.rollout_id = {{rollout:UUID}}
    AND r.variant IN ('target', 'baseline') AND r.alloc_unit != 0 AND {_IN_TIME}"""
_ALLOCATED = f"{_IN_ARM} AND NOT r.alloc_fallback"
_HISTOGRAMS = f"""
    sumMapIf(map({_bin("r.latency_ms")}, toUInt64(1)), {_ANSWERED}) AS latency,
    sumMapIf(map({_bin(_COST)}, toUInt64(1)), {_PRICED}) AS cost"""

_MINUTES = f"""
SELECT
    intDiv(toUnixTimestamp(r.ts), 60) AS minute, r.rollout_stage AS stage, toString(r.variant) AS variant,
    countIf({_COUNTED}) AS requests, countIf({_COUNTED} AND {_ERROR}) AS errors, count() AS allocated, {_HISTOGRAMS},
    sumIf(toUInt64(r.latency_ms), {_ANSWERED}) AS latency_ms,
    sumIf(toDecimal128(r.cost_usd, 10), {_PRICED}) AS cost_usd
FROM requests AS r
WHERE {_ALLOCATED}
GROUP BY minute, stage, variant ORDER BY minute, stage, variant
"""  # noqa: S608 - fragments of this file

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
"""  # noqa: S608 - as above

_TOTALS = f"""
SELECT
    toString(r.variant) AS variant, count() AS requests, countIf({_COUNTED}) AS counted,
    countIf({_COUNTED} AND {_ERROR}) AS errors, countIf(r.alloc_fallback) AS substituted,
    countIf({_ANSWERED}) AS answered,
    if(answered = 0, 0, sumIf(toUInt64(r.latency_ms), {_ANSWERED}) / answered) AS average_latency_ms,
    if(answered = 0, 0, toFloat64(quantileTDigestIf(0.95)(r.latency_ms, {_ANSWERED}))) AS p95_latency_ms,
    countIf({_PRICED}) AS priced, countIf(NOT r.cost_known) AS unpriced,
    sum(toDecimal128(r.cost_usd, 10)) AS cost_usd,
    sumIf(toDecimal128(r.cost_usd, 10), {_PRICED}) AS priced_cost_usd
FROM requests AS r
WHERE {_IN_ARM}
GROUP BY variant ORDER BY variant
"""  # noqa: S608 - as above

_UNIT_SUMS = f"""
SELECT
    metric, sum(n) AS requests, sum(n * n) AS requests_squared, sum(x) AS total, sum(x * x) AS total_squared,
    sum(x * n) AS cross, sum(q) AS values_squared
FROM (
    SELECT
        toFloat64(countIf({_COUNTED})) AS n_counted, toFloat64(countIf({_COUNTED} AND {_ERROR})) AS x_errors,
        toFloat64(countIf({_ANSWERED})) AS n_answered,
        toFloat64(countIf({_ANSWERED} AND {_bin("r.latency_ms")} > {{slow_bin:UInt32}})) AS x_slow,
        sumIf(least(toFloat64(r.latency_ms), {{latency_cap:Float64}}), {_ANSWERED}) AS x_latency,
        sumIf(pow(least(toFloat64(r.latency_ms), {{latency_cap:Float64}}), 2), {_ANSWERED}) AS q_latency,
        toFloat64(countIf({_PRICED})) AS n_priced,
        sumIf(least({_COST}, {{cost_cap:Float64}}), {_PRICED}) AS x_cost,
        sumIf(pow(least({_COST}, {{cost_cap:Float64}}), 2), {_PRICED}) AS q_cost
    FROM requests AS r
    WHERE {_ALLOCATED} AND r.variant = 'baseline'
    GROUP BY r.alloc_unit
)
ARRAY JOIN
    ['errors', 'slow', 'latency', 'cost'] AS metric, [n_counted, n_answered, n_answered, n_priced] AS n,
    [x_errors, x_slow, x_latency, x_cost] AS x, [x_errors, x_slow, q_latency, q_cost] AS q
GROUP BY metric
"""  # noqa: S608 - as above

_USUAL = f"""
SELECT {_HISTOGRAMS}
FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.prompt_config_id = {{config:UUID}}
    AND r.prompt_version = {{version:UInt32}} AND {_IN_TIME}
"""  # noqa: S608 - as above


def arm_minutes(
    project_id: UUID, rollout_id: UUID, start: datetime, end: datetime, *, log_ratio: float
) -> list[ArmMinute]:
    """From `start` up to, not including, `end`; minutes without requests are not there. Bin k ≥ 1 of a histogram is
    around exp((k - 1) log_ratio) units, bin 0 is nothing."""
    params = {**_rollout(project_id, rollout_id, start, end), "log_ratio": log_ratio}
    return client.query(_MINUTES, params, row=ArmMinute, name="variants.minutes")


def new_units(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime, *, since: int) -> list[NewUnits]:
    """Units that were first seen from the minute `since` on, the rollout having begun at `start`."""
    params = {**_rollout(project_id, rollout_id, start, end), "since": since}
    return client.query(_NEW_UNITS, params, row=NewUnits, name="variants.units")


def arm_totals(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime) -> Mapping[str, ArmTotals]:
    """By arm; an arm without requests is there with zeros."""
    rows = client.query(_TOTALS, _rollout(project_id, rollout_id, start, end), row=ArmTotals, name="variants.totals")
    return {variant: ArmTotals(variant) for variant in (TARGET, BASELINE)} | {row.variant: row for row in rows}


def unit_sums(
    project_id: UUID, rollout_id: UUID, start: datetime, end: datetime, *, limits: UnitLimits, log_ratio: float
) -> Mapping[str, UnitSums]:
    """By `errors`, `slow`, `latency`, `cost`; empty when the baseline had no requests."""
    params = {
        **_rollout(project_id, rollout_id, start, end),
        "log_ratio": log_ratio,
        "slow_bin": limits.slow_bin,
        "latency_cap": limits.latency_cap_ms,
        "cost_cap": limits.cost_cap,
    }
    return {row.metric: row for row in client.query(_UNIT_SUMS, params, row=UnitSums, name="variants.unit_sums")}


def usual_values(
    project_id: UUID, config_id: UUID, version: int, start: datetime, end: datetime, *, log_ratio: float
) -> UsualValues:
    """What one version of a prompt config usually takes and costs."""
    params: dict[str, Any] = {"project": project_id, "config": config_id, "version": version}
    times = {"start": start, "end": end, "log_ratio": log_ratio}
    return client.query(_USUAL, {**params, **times}, row=UsualValues, name="variants.usual")[0]


def _rollout(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime) -> dict[str, Any]:
    return {"project": project_id, "rollout": rollout_id, "start": start, "end": end}
