"""Sums up one version's requests by the hour in which they were recorded, with or without a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.variants.outcomes import ANSWERED, COST, FRESH, OF_CLIENTS, PRICED, bin_of, counts
from analytics.queries.variants.totals import UsualValues, usual_values

# A row comes when its request has ended and its host could reach the store.
_RECORDED_WITHIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Version:
    project_id: UUID
    config_id: UUID
    number: int


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """The bin above which a request is slow, and the latency in ms and cost in 10^-10 US dollars at which values are
    cut."""

    slow_bin: int
    latency_cap_ms: float
    cost_cap: float


@dataclass(frozen=True, slots=True)
class HourSums:
    """The requests recorded in one hour (Unix time divided by 3,600), counted as for an arm of a rollout.

    `slow`, `latency` and the exact signals are of the `answered` ones, `cost` is of the `priced` ones; `_squares` are
    sums of squares.
    """

    hour: int
    requests: int
    unanswered: int
    judged: int
    errors: int
    answered: int
    contract: int
    truncated: int
    fallback: int
    empty: int
    slow: int
    latency: float
    latency_squares: float
    priced: int
    cost: float
    cost_squares: float


_LATENCY = "least(toFloat64(r.latency_ms), {latency_cap:Float64})"
_CUT_COST = f"least({COST}, {{cost_cap:Float64}})"
_SQL = f"""
SELECT
    intDiv(toUnixTimestamp(r.recorded_at), 3600) AS hour,
    {counts("requests", "unanswered", "judged", "errors", "answered", "contract", "truncated", "fallback", "empty")},
    countIf({ANSWERED} AND {bin_of("r.latency_ms")} > {{slow_bin:UInt32}}) AS slow,
    sumIf({_LATENCY}, {ANSWERED}) AS latency, sumIf(pow({_LATENCY}, 2), {ANSWERED}) AS latency_squares,
    {counts("priced")}, sumIf({_CUT_COST}, {PRICED}) AS cost,
    sumIf(pow({_CUT_COST}, 2), {PRICED}) AS cost_squares
FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.prompt_config_id = {{config:UUID}}
    AND r.prompt_version = {{version:UInt32}} AND {OF_CLIENTS}
    AND r.ts >= {{came_after:DateTime64(6, 'UTC')}}
    AND r.recorded_at >= {{start:DateTime64(3, 'UTC')}} AND r.recorded_at < {{end:DateTime64(3, 'UTC')}}
GROUP BY hour ORDER BY hour
"""


def hour_sums(
    version: Version, start: datetime, end: datetime, *, limits: ValueLimits, long_wait_ms: float, log_ratio: float
) -> list[HourSums]:
    """The hours that have requests recorded from `start` up to, not including, `end`. Raises AnalyticsUnavailableError
    and AnalyticsLimitError."""
    params = {
        "project": version.project_id,
        "config": version.config_id,
        "version": version.number,
        "came_after": start - _RECORDED_WITHIN,
        "start": start,
        "end": end,
        "slow_bin": limits.slow_bin,
        "latency_cap": limits.latency_cap_ms,
        "cost_cap": limits.cost_cap,
        "long_wait_ms": long_wait_ms,
        "log_ratio": log_ratio,
    }
    return client.query(_SQL, params, row=HourSums, name="variants.by_hour", fresh=FRESH)


def usual_of(version: Version, start: datetime, end: datetime, *, log_ratio: float) -> UsualValues:
    return usual_values(version.project_id, version.config_id, version.number, start, end, log_ratio=log_ratio)
