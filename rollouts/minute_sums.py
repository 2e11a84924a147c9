"""The judged minutes of a rollout as few sums over time, added up where they are stored: a rollout of a week has ten
thousand minutes, each with histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Max, Min

from rollouts.models import RolloutMinute

BUCKETS = 96
"""The largest number of intervals that the minutes are put together into."""

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ArmSums:
    """The sums of one arm in one interval. `unanswered` is None under the first formula, which did not count it."""

    requests: int
    unanswered: int | None
    judged: int
    errors: int
    answered: int
    latency_ms: int
    priced: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class Sums:
    """Both arms in each interval of `step`, which `times` begin; None where an arm has no minute."""

    times: Sequence[datetime]
    step: timedelta
    target: Sequence[ArmSums | None]
    baseline: Sequence[ArmSums | None]


_SQL = """
SELECT
    floor(extract(epoch FROM m.minute - %(first)s) / %(seconds)s)::int AS bucket,
    sum((a.counts ->> 'requests')::bigint) AS requests,
    sum((a.counts ->> 'unanswered')::bigint) AS unanswered,
    sum(coalesce(a.counts ->> 'judged', a.counts ->> 'requests')::bigint) AS judged,
    sum((a.counts ->> 'errors')::bigint) AS errors,
    sum((SELECT coalesce(sum(value::bigint), 0) FROM jsonb_each_text(a.counts -> 'latency'))) AS answered,
    sum((a.counts ->> 'latency_ms')::bigint) AS latency_ms,
    sum((SELECT coalesce(sum(value::bigint), 0) FROM jsonb_each_text(a.counts -> 'cost'))) AS priced,
    sum((a.counts ->> 'cost_usd')::numeric) AS cost_usd
FROM rollouts_rolloutminute AS m CROSS JOIN LATERAL (SELECT m.counts -> %(arm)s AS counts) AS a
WHERE m.rollout_id = %(rollout)s AND a.counts IS NOT NULL
GROUP BY bucket
"""


def minute_sums(rollout_id: UUID) -> Sums | None:
    """Returns the sums of the rollout's minutes, in at most BUCKETS intervals; None without minutes."""
    ends = RolloutMinute.objects.filter(rollout_id=rollout_id).aggregate(first=Min("minute"), last=Max("minute"))
    first, last = ends["first"], ends["last"]
    if first is None or last is None:
        return None
    count = (last - first) // _MINUTE + 1
    step = math.ceil(count / BUCKETS) * _MINUTE
    length = math.ceil(count * _MINUTE / step)
    arms = {arm: _arm(rollout_id, arm, first, step) for arm in ("target", "baseline")}
    return Sums(
        times=[first + number * step for number in range(length)],
        step=step,
        target=[arms["target"].get(number) for number in range(length)],
        baseline=[arms["baseline"].get(number) for number in range(length)],
    )


def _arm(rollout_id: UUID, arm: str, first: datetime, step: timedelta) -> dict[int, ArmSums]:
    params: dict[str, Any] = {"rollout": rollout_id, "arm": arm, "first": first, "seconds": step.total_seconds()}
    with connection.cursor() as cursor:
        cursor.execute(_SQL, params)
        return {bucket: ArmSums(*_whole(sums)) for bucket, *sums in cursor.fetchall()}


def _whole(sums: Sequence[Decimal | int | None]) -> list[Any]:
    """Returns the sums as whole numbers but for the cost, which comes last."""
    *counts, cost_usd = sums
    return [*(None if one is None else int(one) for one in counts), cost_usd]
