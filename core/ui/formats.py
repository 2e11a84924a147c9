"""Figures as people read them. Times are in Django's current time zone, which the frame sets to the reader's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

UNKNOWN = "unknown"
NONE = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"

_SMALL_DIGITS = 2
_THOUSAND = 1000
_SIZES = ("B", "KB", "MB", "GB", "TB")
_COMPACT = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k"))
_MANY_TIMES = 10


def money(value: Decimal | float | str | None) -> str:
    """Returns dollars: cents from one cent up, two significant digits below."""
    if value is None:
        return UNKNOWN
    dollars = Decimal(str(value))
    sign, amount = ("-" if dollars < 0 else ""), abs(dollars)
    if amount == 0:
        return "$0"
    if amount >= Decimal("0.01"):
        return f"{sign}${amount:,.2f}"
    places = min(10, -amount.adjusted() + _SMALL_DIGITS - 1)
    digits = f"{amount:.{places}f}".rstrip("0")
    return f"{sign}${digits}" if digits != "0." else f"{sign}$0"


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return NONE
    # Each bound lies where rounding would reach the next unit, so that nothing is shown as "1.00 ms" or "60.0 s".
    if 0 < milliseconds < 0.995:
        return f"{milliseconds:.2f} ms"
    if milliseconds < _THOUSAND - 0.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / _THOUSAND
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} days"
    parts = {"h": hours, "min": minutes} if hours else {"min": minutes, "s": rest}
    return " ".join(f"{value} {unit}" for unit, value in parts.items() if value)


def number(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def compact(value: float | None) -> str:
    if value is None:
        return NONE
    for step, letter in _COMPACT:
        if abs(value) >= step:
            return f"{value / step:.3g} {letter}" if abs(value) < _THOUSAND * step else f"{value / step:,.0f} {letter}"
    return number(value)


def share(value: float | None) -> str:
    """Returns per cent of a share from 0 to 1. Only an exact 0 or 1 shows as 0 or 100 %."""
    if value is None:
        return NONE
    percent = value * 100
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %".replace(".0 %", " %")


def change(now: float | Decimal | None, before: float | Decimal | None) -> str:
    if now is None or not before:
        return ""
    ratio = float(now) / float(before)
    if ratio >= _MANY_TIMES:
        return f"{ratio:,.0f} times"
    percent = round((ratio - 1) * 100)
    return "no change" if percent == 0 else f"{percent:+d} %".replace("-", MINUS)


def size(value: float | None) -> str:
    if value is None:
        return NONE
    amount, unit = float(value), 0
    while amount >= _THOUSAND and unit < len(_SIZES) - 1:
        amount, unit = amount / _THOUSAND, unit + 1
    return f"{amount:.0f} {_SIZES[unit]}" if unit == 0 else f"{amount:.3g} {_SIZES[unit]}"


def moment(value: datetime | None) -> SafeString | str:
    if value is None:
        return NONE
    local = timezone.localtime(value if value.tzinfo else value.replace(tzinfo=UTC))
    form = "%d %b %H:%M:%S" if local.year == timezone.localtime().year else "%d %b %Y %H:%M"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        value.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        local.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + f" {local.tzname()}",
        local.strftime(form).lstrip("0"),
    )


def day(value: date | datetime | None) -> str:
    if value is None:
        return NONE
    shown = timezone.localtime(value).date() if isinstance(value, datetime) else value
    return shown.strftime("%d %b %Y").lstrip("0")


def age(value: datetime | None) -> str:
    if value is None:
        return NONE
    minutes = int((timezone.now() - value).total_seconds()) // 60
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 60 else duration(minutes * 60 * _THOUSAND)
