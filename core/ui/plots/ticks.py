from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from core.ui.plots.shapes import Unit

_FACTORS = (1, 2, 5, 10)
_SECOND, _MINUTE, _HOUR = 1000.0, 60_000.0, 3_600_000.0
_DURATION_STEPS = (
    *(_SECOND * seconds for seconds in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * hours for hours in (1, 2, 6, 12, 24)),
)
_MAX_TIME_TICKS = 9
_MINUTES = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30))
_HOURS = tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12))
_DAYS = (1, 2, 7)
_MONTHS = (1, 3, 6)
_DAY = timedelta(days=1)
_SHORTEST_MONTH = timedelta(days=28)
_LAST_YEAR = 9999


def value_ticks(low: float, high: float, unit: Unit, *, count: int = 4, whole: bool = False) -> list[float]:
    """Returns about `count` ascending round values that span `low` to `high`. `low` must be below `high`.

    With `whole` they are whole numbers.
    """
    # Closer ticks than this would be the same numbers.
    smallest = max(abs(low), abs(high), 1e-6) * 1e-6
    step = _value_step(max((high - low) / count, smallest), unit)
    if whole:
        step = max(step, 1.0)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, max(last, first + 1) + 1)]


def _value_step(at_least: float, unit: Unit) -> float:
    if unit is Unit.MILLISECONDS and at_least > _SECOND / 2:
        for step in _DURATION_STEPS:
            if step >= at_least:
                return step
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(factor * power for factor in _FACTORS if factor * power >= at_least * (1 - 1e-9))


def time_ticks(start: datetime, end: datetime, zone: tzinfo) -> list[tuple[datetime, str]]:
    """Returns ascending moments with labels: times such as 14:00, days such as 22 Nov, months or years. `start` must be
    before `end`."""
    length = end - start
    for step in _MINUTES:
        if length / step <= _MAX_TIME_TICKS:
            return [(moment, _clock(moment, zone)) for moment in _by_minutes(start, end, step, zone)]
    for step in _HOURS:
        if length / step <= _MAX_TIME_TICKS:
            return [(moment, _clock(moment, zone)) for moment in _by_hours(start, end, step, zone)]
    for days in _DAYS:
        if length / (days * _DAY) <= _MAX_TIME_TICKS:
            return [(moment, _day(moment, zone)) for moment in _by_days(start, end, days, zone)]
    for months in _MONTHS:
        if length / (months * _SHORTEST_MONTH) <= _MAX_TIME_TICKS:
            return [(moment, _month(moment, zone)) for moment in _by_months(start, end, months, zone)]
    years = math.ceil(length / (365 * _DAY) / _MAX_TIME_TICKS)
    return [(moment, str(moment.astimezone(zone).year)) for moment in _by_months(start, end, 12 * years, zone)]


def spread(ticks: Sequence[tuple[datetime, str]]) -> list[tuple[datetime, str, bool]]:
    every = 2 if len(ticks) > _MAX_TIME_TICKS // 2 else 1
    return [(moment, label, index % every == 0) for index, (moment, label) in enumerate(ticks)]


def _by_minutes(start: datetime, end: datetime, step: timedelta, zone: tzinfo) -> Iterator[datetime]:
    local = start.astimezone(zone)
    into = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond) % step
    moment = start if not into else start - into + step
    while moment <= end:
        yield moment
        moment += step


def _by_hours(start: datetime, end: datetime, step: timedelta, zone: tzinfo) -> Iterator[datetime]:
    """Yields wall clock times, whose distances differ where the zone changes its offset."""
    wall = start.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    yield from _from_wall((wall + index * step for index in _ever()), start, end, zone)


def _by_days(start: datetime, end: datetime, days: int, zone: tzinfo) -> Iterator[datetime]:
    wall = start.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    # The same days for every range, so that ticks stay where they are while the range moves on.
    wall -= timedelta(days=wall.toordinal() % days)
    yield from _from_wall((wall + index * days * _DAY for index in _ever()), start, end, zone)


def _by_months(start: datetime, end: datetime, months: int, zone: tzinfo) -> Iterator[datetime]:
    local = start.astimezone(zone)
    first = (local.year * 12 + local.month - 1) // months * months
    walls = (_first_day(first + index * months) for index in _ever())
    yield from _from_wall(walls, start, end, zone)


def _first_day(month: int) -> datetime:
    return datetime(min(max(month // 12, 1), _LAST_YEAR), month % 12 + 1, 1)  # noqa: DTZ001 - the time of a wall clock


def _ever() -> Iterator[int]:
    return iter(range(10_000))


def _from_wall(walls: Iterator[datetime], start: datetime, end: datetime, zone: tzinfo) -> Iterator[datetime]:
    latest = start - timedelta(microseconds=1)
    for wall in walls:
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment > end:
            return
        # A wall clock time that a zone leaves out is the same moment as another one.
        if moment > latest:
            latest = moment
            yield moment


def _clock(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return _day(moment, zone) if (local.hour, local.minute) == (0, 0) else local.strftime("%H:%M")


def _day(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return f"{local.day} {local:%b}"


def _month(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return str(local.year) if local.month == 1 else f"{local:%b}"
