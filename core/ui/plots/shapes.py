"""The kinds of plots, as pages describe them. A value that is None or not finite is a gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Literal

Value = int | float | Decimal | None
Kind = Literal["", "good", "warn", "bad", "neutral"]
"""The meaning of a colour; an empty kind takes the next colour of the plot."""

PlotKind = Literal["line", "bars", "stacked"]

NO_DATA = "No data in this range."


class Unit(StrEnum):
    """A share is a number from 0 to 1; money is in dollars."""

    COUNT = "count"
    MONEY = "money"
    MILLISECONDS = "milliseconds"
    SHARE = "share"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    values: Sequence[Value]
    kind: Kind = ""


@dataclass(frozen=True, slots=True)
class Threshold:
    name: str
    value: float | Decimal
    kind: Kind = "warn"


@dataclass(frozen=True, slots=True)
class Mark:
    name: str
    time: datetime
    href: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    name: str
    lower: Sequence[Value]
    upper: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Plot:
    """Values over time. Each of `times` begins an interval of `step`, by default the smallest distance of two times.
    Intervals that begin after now are left out, unless the plot has a forecast and is not `until_now`.

    The value axis begins at zero; with `from_zero=False`, near the lowest value. `brush` is the address of a page to
    open with the `start` and `end` that somebody marks; `keep` is that of the form which keeps the plot on a dashboard.
    """

    title: str
    times: Sequence[datetime]
    series: Sequence[Series]
    unit: Unit = Unit.COUNT
    kind: PlotKind = "line"
    thresholds: Sequence[Threshold] = ()
    bands: Sequence[Band] = ()
    marks: Sequence[Mark] = ()
    brush: str = ""
    keep: str = ""
    from_zero: bool = True
    step: timedelta | None = None
    caption: bool = True
    empty: str = NO_DATA
    until_now: bool = True
    # A slim plot is 90 pixels high and has no marks and thresholds.
    is_slim: bool = False


@dataclass(frozen=True, slots=True)
class BarItem:
    label: str
    value: Value
    href: str = ""
    kind: Kind = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class BarList:
    title: str
    items: Sequence[BarItem]
    unit: Unit = Unit.COUNT
    caption: bool = True
    empty: str = NO_DATA


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of work in a trace. Without `end` it has not ended, and is drawn to the trace's end."""

    id: str
    parent_id: str | None
    name: str
    start: datetime
    end: datetime | None
    kind: Kind = ""
    href: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A tree of spans, each with a bar for its time. The first `open_depth` levels are unfolded, and so is the way to
    each span of kind "bad"."""

    title: str
    spans: Sequence[Span]
    open_depth: int = 3
    caption: bool = True
    empty: str = "No spans."


State = Literal["good", "warn", "bad", "none"]


@dataclass(frozen=True, slots=True)
class Strip:
    title: str
    cells: Sequence[tuple[datetime, State, str]]
    step: timedelta | None = None
    caption: bool = True
    empty: str = NO_DATA


@dataclass(frozen=True, slots=True)
class Sparkline:
    title: str
    values: Sequence[Value]
    unit: Unit = Unit.COUNT
    kind: Kind = ""


@dataclass(frozen=True, slots=True)
class Interval:
    """A difference and its interval, for a row of a table. `limit` is the difference that matters: upwards, or
    downwards if negative. `label` writes a difference."""

    title: str
    low: float
    value: float
    high: float
    label: Callable[[float], str]
    limit: float | None = None
    limit_name: str = "limit"
