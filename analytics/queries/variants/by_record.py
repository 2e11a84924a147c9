"""Counts the minutes of a rollout by the time at which its requests were recorded.

Every request is counted in the minute in which its row came into the store, however late, under the stage in which it
was allocated. `outcomes` classifies the requests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.variants.outcomes import (
    ANSWERED,
    FRESH,
    IN_ARM,
    LEFT_OUT_BY_REASON,
    LONG_WAIT_MS,
    NO_ANSWER,
    OF_ROLLOUT,
    PRICED,
    REASON,
    REQUEST,
    SIGNALS,
    UNANSWERED,
    UNCOMPARED,
    counts,
    counts_by,
    histograms,
)

_CLOCKS_DIFFER_BY = timedelta(hours=1)


@dataclass(frozen=True)
class Recorded:
    """The rows of one rollout that a query reads: those recorded from `start` up to, not including, `end`.

    `began` is the start of the rollout, before all its requests. A client that cancels after more than `long_wait_ms`
    waited too long, so its request counts as unanswered.
    """

    project_id: UUID
    rollout_id: UUID
    began: datetime
    start: datetime
    end: datetime
    long_wait_ms: float = LONG_WAIT_MS

    def parameters(self) -> dict[str, Any]:
        return {
            "project": self.project_id,
            "rollout": self.rollout_id,
            # Rows are ordered by the arrival of their requests, by the clocks of the hosts that received them.
            "came_after": self.began - _CLOCKS_DIFFER_BY,
            "start": self.start,
            "end": self.end,
            "long_wait_ms": self.long_wait_ms,
        }


@dataclass(frozen=True)
class RecordedMinute:
    """One arm of one stage in one minute, which is Unix time divided by 60.

    `allocated` are all of the arm, cache hits and refusals that no version affects included. `left_out` counts, by
    reason, what does not count otherwise (see `outcomes.LEFT_OUT`), also what was not allocated at all: forced, or by
    another unit. The others are `requests` and, where the question was in the cache, `uncompared`, of which
    `uncompared_unanswered` got no proper answer; they are in no other count.

    `answered` are those with an answer, and `contract`, `truncated`, `fallback` and `empty` those of them with that
    fault; `stopped` are requests whose client left after the first output. `latency` and `cost` count answered requests
    by bin, in ms and 10^-10 US dollars, of cost without what has no price. `latency_ms` and `cost_usd` are their sums.
    `latency_read` and `cost_read` are those of them whose prompt the provider read from its cache.
    """

    minute: int
    stage: int
    variant: str
    allocated: int = 0
    requests: int = 0
    unanswered: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    uncompared: int = 0
    uncompared_unanswered: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    judged: int = 0
    errors: int = 0
    answered: int = 0
    contract: int = 0
    truncated: int = 0
    fallback: int = 0
    empty: int = 0
    stopped: int = 0
    latency: Mapping[int, int] = field(default_factory=dict)
    latency_ms: int = 0
    cost: Mapping[int, int] = field(default_factory=dict)
    cost_usd: Decimal = Decimal(0)
    latency_read: Mapping[int, int] = field(default_factory=dict)
    cost_read: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedUnits:
    minute: int
    stage: int
    variant: str
    units: int


BUCKETS = 10_000
"""The buckets of users: the remainder of a unit's number by this decides its arm."""

MINUTE = "intDiv(toUnixTimestamp(r.recorded_at), 60)"
_ALL = f"""{OF_ROLLOUT}
    AND r.ts >= {{came_after:DateTime64(6, 'UTC')}} AND r.recorded_at < {{end:DateTime64(3, 'UTC')}}"""
_NOT_BEFORE = "r.recorded_at >= {start:DateTime64(3, 'UTC')}"
UP_TO = f"{_ALL} AND {IN_ARM}"
WITHIN = f"{UP_TO} AND {_NOT_BEFORE}"

# A request that was counted while it was open has already been counted as allocated, as a request and as unanswered.
NEW = "NOT has({counted:Array(UUID)}, r.request_id)"
_MINUTES = f"""
SELECT
    {MINUTE} AS minute, r.rollout_stage AS stage, toString(r.variant) AS variant,
    countIf({IN_ARM} AND {NEW}) AS allocated,
    countIf({REQUEST} AND {NEW}) AS requests, countIf({UNANSWERED} AND {NEW}) AS unanswered,
    countIf({UNCOMPARED} AND {NEW}) AS uncompared,
    countIf({UNCOMPARED} AND {NO_ANSWER} AND {NEW}) AS uncompared_unanswered,
    {counts_by(REASON, f"{UNANSWERED} AND {NEW}")} AS reasons, {LEFT_OUT_BY_REASON} AS left_out,
    {counts("judged", "errors", *SIGNALS)}, {histograms()}, {histograms("r.cache_read_tokens > 0", "_read")},
    sumIf(toUInt64(r.latency_ms), {ANSWERED}) AS latency_ms,
    sumIf(toDecimal128(r.cost_usd, 10), {PRICED}) AS cost_usd
FROM requests AS r
WHERE {_ALL} AND {_NOT_BEFORE}
GROUP BY minute, stage, variant ORDER BY minute, stage, variant
"""

_UNITS = f"""
SELECT minute, stage, variant, count() AS units
FROM (
    SELECT
        intDiv(toUnixTimestamp(min(r.recorded_at)), 60) AS minute, min(r.recorded_at) AS first,
        argMin(r.rollout_stage, (r.recorded_at, r.ts)) AS stage,
        argMin(toString(r.variant), (r.recorded_at, r.ts)) AS variant
    FROM requests AS r
    WHERE {UP_TO} AND r.alloc_unit IN (SELECT r.alloc_unit FROM requests AS r WHERE {WITHIN})
    GROUP BY r.alloc_unit
)
WHERE first >= {{start:DateTime64(3, 'UTC')}}
GROUP BY minute, stage, variant ORDER BY minute, stage, variant
"""

_ROWS = """
SELECT request_id, min(recorded_at) AS recorded_at
FROM requests
WHERE project_id = {project:UUID} AND request_id IN {ids:Array(UUID)}
    AND ts >= {first:DateTime64(6, 'UTC')} AND ts <= {last:DateTime64(6, 'UTC')}
GROUP BY request_id
"""

_BUCKETS = f"""
SELECT r.request_id AS request_id, toUInt32(any(r.alloc_unit) % {BUCKETS}) AS bucket
FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.request_id IN {{ids:Array(UUID)}} AND {IN_ARM}
    AND r.ts >= {{first:DateTime64(6, 'UTC')}} AND r.ts <= {{last:DateTime64(6, 'UTC')}}
GROUP BY request_id
"""
_IDS_AT_ONCE = 5_000


@dataclass(frozen=True)
class _Row:
    request_id: UUID
    recorded_at: datetime


@dataclass(frozen=True)
class _Bucket:
    request_id: UUID
    bucket: int


def recorded_minutes(rows: Recorded, *, counted: Collection[UUID], log_ratio: float) -> list[RecordedMinute]:
    """The minutes that have rows.

    Bin k ≥ 1 of a histogram is around exp((k - 1) log_ratio) units, bin 0 is nothing. The rows of requests that were
    `counted` while open add only what was unknown then: their end, latency and cost.
    """
    params = {**rows.parameters(), "counted": [str(one) for one in counted], "log_ratio": log_ratio}
    return client.query(_MINUTES, params, row=RecordedMinute, name="variants.recorded_minutes", fresh=FRESH)


def recorded_units(rows: Recorded) -> list[RecordedUnits]:
    return client.query(_UNITS, rows.parameters(), row=RecordedUnits, name="variants.recorded_units", fresh=FRESH)


def recorded_at(project_id: UUID, arrived: Mapping[UUID, datetime]) -> Mapping[UUID, datetime]:
    """When the rows of these requests were recorded, by id; leaves out requests without a row. `arrived` are the times
    of arrival."""
    if not arrived:
        return {}
    times = {"first": min(arrived.values()), "last": max(arrived.values())}
    params = {"project": project_id, "ids": [str(one) for one in arrived], **times}
    found = client.query(_ROWS, params, row=_Row, name="variants.rows", fresh=FRESH)
    return {row.request_id: row.recorded_at for row in found}


def buckets_of(project_id: UUID, arrived: Mapping[UUID, datetime]) -> Mapping[UUID, int]:
    """The buckets of these requests' users, by id; leaves out requests without a row. `arrived` are the times of
    arrival."""
    ids, found = list(arrived), dict[UUID, int]()
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = ids[start : start + _IDS_AT_ONCE]
        times = [arrived[one] for one in some]
        params = {"project": project_id, "ids": [str(one) for one in some], "first": min(times), "last": max(times)}
        rows = client.query(_BUCKETS, params, row=_Bucket, name="variants.buckets", fresh=FRESH)
        found.update({row.request_id: row.bucket for row in rows})
    return found
