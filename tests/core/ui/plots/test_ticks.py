from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ui.plots.labels import tick_label, time_label
from core.ui.plots.shapes import Unit
from core.ui.plots.ticks import time_ticks, value_ticks
from tests.tables.cases import tabled

_NAMES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
ZONES = [ZoneInfo(name) for name in _NAMES]
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@given(
    low=st.floats(-1e9, 1e9),
    length=st.floats(1e-6, 1e9),
    unit=st.sampled_from(list(Unit)),
    whole=st.booleans(),
)
def test_value_ticks__any_range__ascend_around_it_and_read_differently(
    low: float, length: float, unit: Unit, whole: bool
) -> None:
    high = low + max(length, abs(low) * 1e-3)
    ticks = value_ticks(low, high, unit, whole=whole)
    step = ticks[1] - ticks[0]
    assert 2 <= len(ticks) <= 8
    assert all(later > earlier for earlier, later in pairwise(ticks))
    assert ticks[0] <= low + step * 1e-6
    assert ticks[-1] >= high - step * 1e-6


@tabled
def test_value_ticks__each_unit__have_round_labels(high: float, unit: Unit, expected: list[str]) -> None:
    ticks = value_ticks(0.0, high, unit)
    assert [tick_label(unit, tick, ticks[1] - ticks[0]) for tick in ticks] == expected


@given(
    after=st.timedeltas(timedelta(), timedelta(days=13_000)),
    length=st.timedeltas(timedelta(minutes=1), timedelta(days=4000)),
    zone=st.sampled_from(ZONES),
)
def test_time_ticks__any_range_and_zone__ascend_within_it(after: timedelta, length: timedelta, zone: ZoneInfo) -> None:
    start = datetime(2001, 1, 1, tzinfo=UTC) + after
    ticks = time_ticks(start, start + length, zone)
    moments = [moment for moment, _ in ticks]
    assert len(ticks) <= 13
    assert all(later > earlier for earlier, later in pairwise(moments))
    assert all(start <= moment <= start + length for moment in moments)


@tabled
def test_time_ticks__usual_ranges__are_round_times(length: timedelta, expected: list[str]) -> None:
    labels = [label for _, label in time_ticks(NOON, NOON + length, ZoneInfo("UTC"))]
    assert labels == expected


def test_time_ticks__other_zone__are_that_zones_days() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    ticks = time_ticks(NOON, NOON + timedelta(days=3), berlin)
    days = [moment for moment, label in ticks if label.endswith("Nov")]
    assert [moment.astimezone(berlin).hour for moment in days] == [0] * len(days)
    assert days[0] == datetime(2026, 11, 22, 23, tzinfo=UTC)


def test_time_ticks__over_a_change_of_the_clocks__stay_on_the_wall_clock() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    start = datetime(2026, 10, 24, 18, tzinfo=UTC)
    ticks = time_ticks(start, start + timedelta(hours=20), berlin)
    assert [moment.astimezone(berlin).hour % 3 for moment, _ in ticks] == [0] * len(ticks)
    assert len({label for _, label in ticks}) == len(ticks)


@pytest.mark.parametrize(("zone", "label"), [("UTC", "25 Nov"), ("America/New_York", "24 Nov 19:00")])
def test_time_label__day_of_utc__the_time_too_where_it_begins_at_another(zone: str, label: str) -> None:
    assert time_label(datetime(2026, 11, 25, tzinfo=UTC), timedelta(days=1), ZoneInfo(zone)) == label
