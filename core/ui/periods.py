from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from django.utils.dateparse import parse_date, parse_datetime

DEFAULT = "24h"
CUSTOM = "custom"

# The labels of the named ranges, in the order in which pages offer them.
LABELS: Mapping[str, str] = {
    "1h": "Last hour",
    "24h": "Last 24 hours",
    "7d": "Last 7 days",
    "30d": "Last 30 days",
    "today": "Today",
    "yesterday": "Yesterday",
    "week": "This week",
    "month": "This month",
    "last_month": "Month before",
}
_LENGTHS = {"1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
_STEPS = {"today": timedelta(days=1), "week": timedelta(days=7)}
_MONTHS = ("month", "last_month")
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


class PeriodError(ValueError):
    """The message names the parameter."""


@dataclass(frozen=True, slots=True)
class Period:
    """A range in UTC that includes both ends. `name` is a key of LABELS, or CUSTOM."""

    name: str
    start: datetime
    end: datetime

    @property
    def label(self) -> str:
        return LABELS.get(self.name, "Own range")

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    @property
    def parameters(self) -> dict[str, str]:
        if self.name != CUSTOM:
            return {"range": self.name}
        return {"range": CUSTOM, "start": _written(self.start), "end": _written(self.end)}

    def before(self) -> Period:
        """Returns the preceding range of the same length; for a day, week or month, the same part of the one before."""
        if self.name not in _MONTHS:
            step = _STEPS.get(self.name, self.length)
            return Period(CUSTOM, self.start - step, self.end - step)
        start = (self.start - timedelta(days=1)).replace(day=1)
        return Period(CUSTOM, start, min(start + self.length, self.start))


def parse_period(given: Mapping[str, str], now: datetime, zone: tzinfo) -> Period:
    name = given.get("range") or (CUSTOM if given.get("start") or given.get("end") else DEFAULT)
    # The present second belongs to the range, so that what happened just now is on the page.
    now = now.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
    if name == CUSTOM:
        return _custom(given, now, zone)
    if name in LABELS and name not in _LENGTHS:
        return Period(name, *_by_the_calendar(name, now, zone))
    if name not in _LENGTHS:
        raise PeriodError(f"range: must be one of {', '.join(LABELS)} or {CUSTOM}.")
    return Period(name, now - _LENGTHS[name], now)


def _by_the_calendar(name: str, now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Months are those of budgets, in UTC; days are the reader's."""
    month = now.replace(day=1, hour=0, minute=0, second=0)
    if name == "month":
        return month, now
    if name == "last_month":
        return (month - timedelta(days=1)).replace(day=1), month
    today = now.astimezone(zone).date()
    first = {"yesterday": today - timedelta(days=1), "week": today - timedelta(days=today.weekday())}.get(name, today)
    start = _moment(first, zone, is_end=False).astimezone(UTC)
    return start, _moment(today, zone, is_end=False).astimezone(UTC) if name == "yesterday" else now


def _custom(given: Mapping[str, str], now: datetime, zone: tzinfo) -> Period:
    end = _bound("end", given.get("end", ""), zone, is_end=True) or now
    start = _bound("start", given.get("start", ""), zone, is_end=False) or end - _LENGTHS[DEFAULT]
    if start >= end:
        raise PeriodError("start: must be before the end.")
    return Period(CUSTOM, max(start, _EARLIEST), end)


def _bound(name: str, text: str, zone: tzinfo, *, is_end: bool) -> datetime | None:
    if not text:
        return None
    try:
        day = parse_date(text)
        found = _moment(day, zone, is_end=is_end) if day else parse_datetime(text)
        if found is None:
            raise ValueError(text)
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PeriodError(f"{name}: must be a date or a time, such as 2026-11-22 or 2026-11-22T15:30.") from None


def _moment(day: date, zone: tzinfo, *, is_end: bool) -> datetime:
    return datetime.combine(day, time.max if is_end else time.min, tzinfo=zone)


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
