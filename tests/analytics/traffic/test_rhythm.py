from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from analytics.traffic.rhythm import MAX_SLICE, MAX_TEXT_SLICE, hourly_weights, slices

END = datetime(2026, 11, 20, 13, 37, tzinfo=UTC)
START = END - timedelta(days=90)
TEXTS_FROM = END - timedelta(days=30)


@pytest.mark.parametrize("requests", [1, 7, 999, 20_000, 1_000_000, 10_000_000])
def test_slices_hold_all_requests_in_order_of_time(requests: int) -> None:
    found = slices(requests, START, END, texts_from=TEXTS_FROM, seed=3)
    assert sum(one.requests for one in found) == requests
    assert all(earlier.borders[-1] <= later.borders[0] for earlier, later in pairwise(found))
    assert len({one.number for one in found}) == len(found)
    for one in found:
        assert list(one.borders) == sorted(one.borders)
        assert list(one.cumulative) == sorted(one.cumulative)
        assert len(one.borders) == len(one.cumulative)
        assert (one.cumulative[0], one.cumulative[-1]) == (0.0, 1.0)
        assert one.requests <= 1.2 * (MAX_TEXT_SLICE if one.with_texts else MAX_SLICE)
        assert one.with_texts == (one.borders[0] >= TEXTS_FROM)


def test_a_slice_never_grows_beyond_the_memory_of_an_engine() -> None:
    found = slices(10_000_000, END - timedelta(days=1), END, texts_from=TEXTS_FROM, seed=3)
    assert max(one.requests for one in found) <= 1.2 * MAX_TEXT_SLICE


def test_long_texts_make_small_slices() -> None:
    found = slices(1_000_000, START, END, texts_from=TEXTS_FROM, seed=3, largest_with_texts=2_000)
    assert max(one.requests for one in found if one.with_texts) <= 2_400
    assert sum(one.requests for one in found) == 1_000_000


def test_blocks_of_large_histories_touch_few_days() -> None:
    found = slices(10_000_000, START, END, texts_from=END, seed=3)
    assert all(one.borders[-1] - one.borders[0] <= timedelta(hours=36) for one in found)


def test_the_period_grows_and_rests_at_night_and_on_sundays() -> None:
    hours = hourly_weights(START, END, seed=1)
    assert hours[0][0] == START
    by_hour = {hour: sum(w for moment, w in hours if moment.hour == hour) for hour in (3, 15)}
    by_day = {day: sum(w for moment, w in hours if moment.weekday() == day) for day in (2, 6)}
    assert by_hour[15] > 3 * by_hour[3]
    assert by_day[2] > 2 * by_day[6]
    week = 7 * 24
    assert sum(w for _, w in hours[-week:]) > 1.7 * sum(w for _, w in hours[:week])
    assert hourly_weights(START, END, seed=1) == hours
    assert hourly_weights(START, END, seed=2) != hours
