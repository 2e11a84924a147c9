from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

from rest_framework.request import Request

from analytics.queries.summed import Scope
from core.wire.parameters import RangeParameters

DEFAULT_DAYS = 30

_TICK = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TimeRange:
    """Includes both its ends."""

    start: datetime
    end: datetime

    def of(self, project_id: UUID, operation: str = "", **more: Any) -> Scope:
        return Scope(project_id, self.start, self.end, operation, **more)


def parse_range(request: Request, *, max_length: timedelta | None = None) -> TimeRange:
    return time_range(request.query_params.dict(), datetime.now(UTC), max_length=max_length)


def time_range(values: Mapping[str, Any], now: datetime, *, max_length: timedelta | None = None) -> TimeRange:
    """Returns the range from `start_date` to `end_date`, by default today and the 29 days before.

    A range longer than `max_length` is cut to its last part, or to its first if only `start_date` is given. Raises
    DRF's ValidationError.
    """
    given = RangeParameters(data=dict(values))
    given.is_valid(raise_exception=True)
    start, end = given.validated_data.get("start_date"), given.validated_data.get("end_date")
    if end is None:
        end = _last_instant(max(now, start) if start else now)
        if start and max_length:
            end = min(end, start + max_length - _TICK)
    if start is None:
        start = _days_before(end, timedelta(days=DEFAULT_DAYS))
    elif max_length:
        start = max(start, _days_before(end, max_length))
    return TimeRange(start, end)


def _last_instant(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time.max, tzinfo=UTC)


def _days_before(end: datetime, length: timedelta) -> datetime:
    """Rounds the last instant of a day up to midnight, so that whole days stay whole."""
    return max((end + _TICK if end.time() == time.max else end) - length, _EPOCH)
