from __future__ import annotations

import math
from datetime import datetime, timedelta, tzinfo

from core.ui import formats
from core.ui.plots.shapes import Unit, Value

_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_COMPACT_FROM = 10_000


def value_label(unit: Unit, value: Value) -> str:
    shown = number(value)
    if value is None or shown is None:
        return formats.NONE
    if unit is Unit.MONEY:
        return formats.money(value)
    if unit is Unit.MILLISECONDS:
        return formats.duration(shown)
    if unit is Unit.SHARE:
        return formats.share(shown)
    return formats.number(shown)


def tick_label(unit: Unit, value: float, step: float) -> str:
    if abs(value) < step / 1000:
        return "0"
    if unit is Unit.SHARE:
        return f"{_digits(value * 100, step * 100)} %"
    if unit is Unit.MONEY:
        return _money(value, step)
    if unit is Unit.MILLISECONDS:
        return _duration(value, step)
    return formats.compact(round(value, 9)) if abs(value) >= _COMPACT_FROM else _digits(value, step)


def _money(value: float, step: float) -> str:
    sign = "-" if value < 0 else ""
    if abs(value) >= _COMPACT_FROM:
        return f"{sign}${formats.compact(abs(value))}"
    text = _digits(abs(value), step)
    return f"{sign}${text}0" if text[-2:-1] == "." else f"{sign}${text}"


def _duration(value: float, step: float) -> str:
    for length, name in ((3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if abs(value) >= length and (length == 1000 or step % length == 0):
            return f"{_digits(value / length, step / length).removesuffix('.0')} {name}"
    return f"{_digits(value, step)} ms"


def _digits(value: float, step: float) -> str:
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{places}f}"


def time_label(moment: datetime, step: timedelta, zone: tzinfo) -> str:
    """Returns a day, or a day and a time. Daily figures are of UTC days, which begin at another time in most zones:
    without the time, the label would name the day before."""
    local = moment.astimezone(zone)
    day = f"{local.day} {local:%b}"
    if step >= _DAY and not (local.hour or local.minute):
        return day
    return f"{day} {local:%H:%M}" if step >= _MINUTE else f"{day} {local:%H:%M:%S}"


def number(value: Value) -> float | None:
    if value is None:
        return None
    found = float(value)
    return found if math.isfinite(found) else None
