"""Sums over the users of a rollout with sticky allocation, which show how much one user's requests resemble each other:
since the rollout's beginning, and for each minute."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.variants.by_record import BUCKETS, MINUTE, NEW, UP_TO, WITHIN, Recorded
from analytics.queries.variants.measures import MEASURES, NAMES, QUANTITIES, Measure, array
from analytics.queries.variants.outcomes import FRESH


@dataclass(frozen=True)
class UnitSums:
    """The sums of one measure over the allocation units u of an arm: with n_u requests of a unit and x_u the sum of
    their values, Σn_u, Σn_u², Σx_u, Σx_u², Σx_u n_u, and the sum of the squared values of single requests."""

    metric: str
    variant: str
    requests: float
    requests_squared: float
    total: float
    total_squared: float
    cross: float
    values_squared: float


@dataclass(frozen=True)
class MinuteSums(UnitSums):
    """The sums over the requests of one arm of one stage in one minute.

    `events` are those of a measure that counts events, by bucket: the bucket that decides a user's arm identifies the
    user, and no id is kept.
    """

    minute: int
    stage: int
    events: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class UnitLimits:
    """The limits above which values are cut, in ms and 10^-10 US dollars, and the bins above which a request is slow:
    `eased_bin` for cohorts, whose target is eased by the margin."""

    latency_cap_ms: float
    slow_bin: int
    cost_cap: float
    eased_bin: int

    def parameters(self) -> dict[str, Any]:
        return {
            "latency_cap": self.latency_cap_ms,
            "slow_bin": self.slow_bin,
            "cost_cap": self.cost_cap,
            "eased_bin": self.eased_bin,
        }


def of_unit(measures: Sequence[Measure] = MEASURES, *, new: str = "1") -> str:
    """SQL of a unit's requests, of the sum of their values, and of that of their squares, by measure. `new` selects the
    requests that were not counted as unanswered while open."""

    def has_value(one: Measure) -> str:
        return f"{one.has_value} AND {new}" if one.name == "unanswered" else one.has_value

    return f"""
        {array(lambda one: f"toFloat64(countIf({has_value(one)}))", measures)} AS numbers,
        {array(lambda one: f"sumIf({one.cut}, {has_value(one)})", measures)} AS sums,
        {array(lambda one: f"sumIf(pow({one.cut}, 2), {has_value(one)})", measures)} AS squares"""


_MEASURES = f"ARRAY JOIN {NAMES} AS metric, numbers AS n, sums AS x, squares AS q"
_SUMS = """
    sum(n) AS requests, sum(n * n) AS requests_squared, sum(x) AS total, sum(x * x) AS total_squared,
    sum(x * n) AS cross, sum(q) AS values_squared"""

_BY_METRIC = f"""
SELECT metric, variant, {_SUMS}
FROM (
    SELECT toString(r.variant) AS variant, {of_unit()}
    FROM requests AS r
    WHERE {UP_TO}
    GROUP BY r.alloc_unit, variant
)
{_MEASURES}
GROUP BY metric, variant
"""

_BY_MINUTE = f"""
SELECT
    minute, stage, variant, metric, {_SUMS},
    sumMapIf(map(bucket, toUInt64(x)), x > 0 AND metric NOT IN {QUANTITIES}) AS events
FROM (
    SELECT
        {MINUTE} AS minute, r.rollout_stage AS stage, toString(r.variant) AS variant,
        toUInt32(r.alloc_unit % {BUCKETS}) AS bucket, {of_unit(new=NEW)}
    FROM requests AS r
    WHERE {WITHIN}
    GROUP BY minute, stage, variant, r.alloc_unit
)
{_MEASURES}
GROUP BY minute, stage, variant, metric ORDER BY minute, stage, variant, metric
"""


def recorded_sums(rows: Recorded, *, limits: UnitLimits, log_ratio: float) -> Mapping[tuple[str, str], UnitSums]:
    params = {**rows.parameters(), **limits.parameters(), "log_ratio": log_ratio}
    found = client.query(_BY_METRIC, params, row=UnitSums, name="variants.recorded_sums", fresh=FRESH)
    return {(row.variant, row.metric): row for row in found}


def minute_sums(rows: Recorded, *, limits: UnitLimits, counted: Collection[UUID], log_ratio: float) -> list[MinuteSums]:
    """The sums of each minute. Requests that were `counted` as unanswered while open are not counted so again."""
    params = {
        **rows.parameters(),
        **limits.parameters(),
        "counted": [str(one) for one in counted],
        "log_ratio": log_ratio,
    }
    return client.query(_BY_MINUTE, params, row=MinuteSums, name="variants.minute_sums", fresh=FRESH)
