from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

from agent.tools.base import ToolContext
from agent.tools.pages import PagedRangeArguments, RangeArguments, listed, page_of
from analytics.parameters.ranges import TimeRange, time_range
from core.errors import ValidationError
from core.wire.pagination import Listing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _TICK = timedelta(days=1), timedelta(microseconds=1)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_WHOLE_DAYS = "dw"


def date_range(context: ToolContext, arguments: RangeArguments, *, max_length: timedelta | None = None) -> TimeRange:
    """Returns the last 30 days by default, and only the last part of a range above `max_length`."""
    return time_range(range_dates(context, arguments), context.now, max_length=max_length)


def listed_in_range(
    context: ToolContext, arguments: PagedRangeArguments, query: Callable[..., Listing], *more: Any
) -> dict[str, Any]:
    dates, page = date_range(context, arguments), page_of(arguments)
    return listed(query(context.project_id, dates, page, *more), page)


def range_dates(context: ToolContext, arguments: RangeArguments) -> dict[str, str]:
    """Returns `start_date` and `end_date` if given. Raises ValidationError for times given twice."""
    dates = {"start_date": arguments.start_date, "end_date": arguments.end_date}
    given = {name: text for name, text in dates.items() if text}
    given_ranges = [name for name in ("last", "period") if getattr(arguments, name) is not None]
    if len(given_ranges) > 1 or (given_ranges and given):
        problem = "Give dates, last or period, and only one of them."
        raise ValidationError(f"{given_ranges[0]}: {problem}", details={given_ranges[0]: [problem]})
    if arguments.last is not None:
        # `$` in a pattern also matches before a final line end.
        start, stop = _last(arguments.last.strip(), context.now)
    elif arguments.period is not None:
        start, stop = _period(arguments.period, _midnight(context.now))
        # A range into the future would list the coming days with zeros.
        stop = min(stop, _midnight(context.now) + _DAY)
    else:
        return given
    return {"start_date": max(start, _EPOCH).isoformat(), "end_date": (stop - _TICK).isoformat()}


def _last(text: str, now: datetime) -> tuple[datetime, datetime]:
    length = timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
    if text[-1] not in _WHOLE_DAYS:
        return now - length, now + _TICK
    tomorrow = _midnight(now) + _DAY
    return tomorrow - length, tomorrow


def _period(name: str, today: datetime) -> tuple[datetime, datetime]:
    if name in ("today", "yesterday"):
        start = today if name == "today" else today - _DAY
        return start, start + _DAY
    if name in ("this_week", "last_week"):
        monday = today - timedelta(days=today.weekday() + (0 if name == "this_week" else 7))
        return monday, monday + timedelta(days=7)
    first = today.replace(day=1)
    if name == "last_month":
        return (first - _DAY).replace(day=1), first
    return first, (first + timedelta(days=31)).replace(day=1)


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(UTC).date(), time.min, tzinfo=UTC)
