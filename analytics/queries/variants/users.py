"""Counts the users of a rollout with sticky allocation, once a stage, to compare them beside requests.

A user counts for a metric in the minute of the stage in which the user's fifth request with a value of the metric was
recorded, with these five. Users who were in the target before the stage are left out: if the arms do not differ, chance
alone decides which of the others are in the target now.

A cohort has the users of a stage, each once, with all of their requests in it so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics.clickhouse import client
from analytics.queries.variants.by_record import BUCKETS, UP_TO, WITHIN, Recorded
from analytics.queries.variants.by_user import UnitLimits, of_unit
from analytics.queries.variants.measures import EASED, MEASURES, NAMES, QUANTITIES, array
from analytics.queries.variants.outcomes import FRESH, bin_of

FIRST = 5
"""So many requests of a user count."""


@dataclass(frozen=True)
class UserMinute:
    """One arm of one stage in one minute. `users` are counted by the number of bad ones among their first five
    requests, or by the bin of the five values' mean, for `latency` and `cost`."""

    minute: int
    stage: int
    variant: str
    metric: str
    users: Mapping[int, int]


_USERS = f"""
SELECT
    intDiv(toUnixTimestamp(fifth_at), 60) AS minute, stage, variant, metric,
    sumMap(map(if(metric IN {QUANTITIES}, {bin_of("(total / 5)")}, toUInt32(total)), toUInt64(1))) AS users
FROM (
    SELECT metric, stage, variant, max(recorded_at) AS fifth_at, sum(value) AS total
    FROM (
        SELECT
            r.alloc_unit AS unit, r.rollout_stage AS stage, toString(r.variant) AS variant, metric, value,
            r.recorded_at AS recorded_at, r.ts AS ts, r.request_id AS request_id
        FROM requests AS r
        ARRAY JOIN
            {NAMES} AS metric, {array(lambda one: one.has_value)} AS has_value,
            {array(lambda one: one.number)} AS value
        WHERE {UP_TO} AND has_value
            AND r.alloc_unit % {BUCKETS} >= 100 * arrayElement({{weights_before:Array(UInt16)}}, r.rollout_stage)
            AND (r.alloc_unit, r.rollout_stage) IN (
                SELECT r.alloc_unit, r.rollout_stage FROM requests AS r WHERE {WITHIN}
            )
        ORDER BY recorded_at, ts, request_id
        LIMIT {FIRST} BY metric, unit, stage, variant
    )
    GROUP BY metric, unit, stage, variant
    HAVING count() = {FIRST} AND fifth_at >= {{start:DateTime64(3, 'UTC')}}
)
GROUP BY minute, stage, variant, metric ORDER BY minute, stage, variant, metric
"""


@dataclass(frozen=True)
class CohortUsers:
    """One arm of a stage. `users` are counted by the share of bad ones among their requests, in thousandths, or by the
    bin of their values' mean, for `latency` and `cost`."""

    variant: str
    metric: str
    users: Mapping[int, int]


_COHORT_MEASURES = (*MEASURES, EASED)
_COHORT = f"""
SELECT
    variant, metric,
    sumMap(map(if(metric IN {QUANTITIES}, {bin_of("(x / n)")}, toUInt32(round(1000 * x / n))), toUInt64(1))) AS users
FROM (
    SELECT toString(r.variant) AS variant, {of_unit(_COHORT_MEASURES)}
    FROM requests AS r
    WHERE {UP_TO} AND r.rollout_stage = {{stage:UInt16}}
        AND r.alloc_unit % {BUCKETS} >= 100 * {{from_weight:UInt16}}
    GROUP BY r.alloc_unit, variant
)
ARRAY JOIN {array(lambda one: f"'{one.name}'", _COHORT_MEASURES)} AS metric, numbers AS n, sums AS x
WHERE n >= {{least:UInt32}}
GROUP BY variant, metric ORDER BY variant, metric
"""


def cohort_users(
    rows: Recorded, *, stage: int, from_weight: int, least: int, limits: UnitLimits, log_ratio: float
) -> list[CohortUsers]:
    """The users of a stage, by the requests recorded until the end of the rows' time. Leaves out users who would be in
    the target at `from_weight` percent, and those with fewer requests than `least`."""
    params = {
        **rows.parameters(),
        **limits.parameters(),
        "stage": stage,
        "from_weight": from_weight,
        "least": least,
        "log_ratio": log_ratio,
    }
    return client.query(_COHORT, params, row=CohortUsers, name="variants.cohort_users", fresh=FRESH)


def user_minutes(rows: Recorded, *, weights_before: Sequence[int], slow_bin: int, log_ratio: float) -> list[UserMinute]:
    """By minute. `weights_before` are the weights before each stage, the first of which is 0. A request is slow above
    `slow_bin`."""
    params = {
        **rows.parameters(),
        "weights_before": list(weights_before),
        "slow_bin": slow_bin,
        "log_ratio": log_ratio,
    }
    return client.query(_USERS, params, row=UserMinute, name="variants.users", fresh=FRESH)
