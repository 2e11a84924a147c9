"""Open requests that are counted before they end, so that a target that never answers does not look unused.

A request without a first output for much longer than usual is unanswered, whatever becomes of it. It is counted at once
and remembered; its row, when it finally comes, is not counted again (`analytics.queries.variants.by_record`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.by_record import BUCKETS
from rollouts.open_requests.lists import OpenRequest

MAX_REMEMBERED = 1000
"""The largest number of remembered requests of one rollout, the oldest first, whatever their arm. Further requests
count when they end."""
REMEMBERED_FOR = timedelta(days=1)
"""The time after which a row that has not come is not expected any more."""
_MIN_OPEN_TIME = timedelta(seconds=60)
_TIMES_USUAL = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Counted:
    request_id: UUID
    arrived_us: int
    stage: int
    variant: str
    bucket: int = 0

    @property
    def arrived(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.arrived_us)


def max_open_time(cap_ms: float | None) -> timedelta:
    """Returns how long a request may be open before it counts as unanswered. `cap_ms` is the 99th percentile of
    latency, None if unknown."""
    return max(_MIN_OPEN_TIME, timedelta(milliseconds=_TIMES_USUAL * (cap_ms or 0.0)))


def overdue(
    requests: Iterable[OpenRequest],
    remembered: Collection[Counted],
    *,
    now: datetime,
    max_open: timedelta,
    stages: Collection[int],
) -> list[Counted]:
    known = {one.request_id for one in remembered}
    latest = (now - max_open - _EPOCH) // timedelta(microseconds=1)
    found = [
        Counted(UUID(one.request_id), one.arrived_us, one.stage, one.variant, one.alloc_unit % BUCKETS)
        for one in requests
        if one.arrived_us <= latest and one.stage in stages and one.variant in (TARGET, BASELINE)
    ]
    # One request may be in two lists, from before and after a worker lost Redis.
    new = {one.request_id: one for one in found if one.request_id not in known}
    oldest = sorted(new.values(), key=lambda one: (one.arrived_us, one.request_id))
    return oldest[: max(0, MAX_REMEMBERED - len(known))]


def still_remembered(
    remembered: Sequence[Counted], recorded: Mapping[UUID, datetime], *, start: datetime, now: datetime
) -> tuple[Counted, ...]:
    """Drops requests whose row was recorded before `start`, where reading resumes, and those that are too old.
    `recorded` has the time at which each row was recorded."""
    return tuple(
        one
        for one in remembered
        if now - one.arrived < REMEMBERED_FOR and not (one.request_id in recorded and recorded[one.request_id] < start)
    )
