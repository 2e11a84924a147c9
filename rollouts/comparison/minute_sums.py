"""A rollout's judged minutes as few sums over time, added up in the database: a week has ten thousand minutes, each
with histograms. The SQL is that of either database."""

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

from rollouts.evaluation.counts import SUMS, Outcomes
from rollouts.models import Rollout, RolloutMinute

BUCKETS = 96
"""The largest number of intervals that the minutes are put together into."""

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ArmSums(Outcomes):
    timed: int = 0
    latency_ms: int = 0
    priced: int = 0
    cost_usd: Decimal = Decimal(0)


_WHOLE = tuple(name for name in SUMS if not name.startswith("uncompared"))


@dataclass(frozen=True, slots=True)
class Sums:
    """Both arms in each interval of `step` that begins at one of `times`; None where an arm has no minute."""

    times: Sequence[datetime]
    step: timedelta
    target: Sequence[ArmSums | None]
    baseline: Sequence[ArmSums | None]


@dataclass(frozen=True, slots=True)
class _Dialect:
    whole: str
    decimal: str
    members: str


_DIALECTS = {
    "postgresql": _Dialect(
        whole="(m.counts #>> '{{{path}}}')::bigint",
        decimal="(m.counts #>> '{{{path}}}')::numeric",
        members="(SELECT coalesce(sum(value::bigint), 0) FROM jsonb_each_text(m.counts #> '{{{path}}}'))",
    ),
    "sqlite": _Dialect(
        whole="json_extract(m.counts, '$.{path}')",
        decimal="CAST(json_extract(m.counts, '$.{path}') AS REAL)",
        members="(SELECT coalesce(sum(value), 0) FROM json_each(m.counts, '$.{path}'))",
    ),
}


def _sql(vendor: str, arm: str) -> str:
    dialect, separator = _DIALECTS[vendor], "," if vendor == "postgresql" else "."

    def at(form: str, name: str) -> str:
        return form.format(path=f"{arm}{separator}{name}")

    whole = dialect.whole
    minute = whole.format(path="minute")
    counted = ", ".join(f"sum({at(whole, name)})" for name in _WHOLE)
    return f"""
    SELECT
        ({minute} - %s) / %s AS bucket, {counted},
        sum({at(dialect.members, "latency")}), sum({at(whole, "latency_ms")}),
        sum({at(dialect.members, "cost")}), sum({at(dialect.decimal, "cost_usd")})
    FROM rollouts_rolloutminute AS m
    WHERE m.rollout_id = %s
    GROUP BY bucket
    """  # noqa: S608 - names are constants, values are parameters


def minute_sums(rollout_id: UUID) -> Sums | None:
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
    # SQLite stores ids as text.
    stored_id = Rollout._meta.pk.get_db_prep_value(rollout_id, connection)
    params = (int(first.timestamp()) // 60, step // _MINUTE, stored_id)
    with connection.cursor() as cursor:
        cursor.execute(_sql(connection.vendor, arm), params)
        return {int(bucket): _sums(*found) for bucket, *found in cursor.fetchall()}


def _sums(*sums: Any) -> ArmSums:
    *whole, timed, latency_ms, priced, cost_usd = sums
    return ArmSums(
        **{name: int(one) for name, one in zip(_WHOLE, whole, strict=True)},
        timed=int(timed),
        latency_ms=int(latency_ms),
        priced=int(priced),
        cost_usd=Decimal(str(cost_usd)),
    )
