from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ui.periods import LABELS, PeriodError, parse_period
from tests.tables.cases import tabled

NOW = datetime(2026, 11, 23, 19, 30, 5, 250, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@tabled
def test_range__named__ends_now(name: str, start: datetime) -> None:
    period = parse_period({"range": name}, NOW, BERLIN)

    assert (period.start, period.end) == (start, datetime(2026, 11, 23, 19, 30, 6, tzinfo=UTC))


def test_range__own_days__are_whole_days_of_the_readers_zone() -> None:
    period = parse_period({"start": "2026-07-01", "end": "2026-07-02"}, NOW, BERLIN)

    assert period.start == datetime(2026, 6, 30, 22, tzinfo=UTC)
    assert period.end == datetime(2026, 7, 2, 21, 59, 59, 999999, tzinfo=UTC)


def test_range__own_times__without_an_offset_in_the_readers_zone() -> None:
    period = parse_period({"start": "2026-07-01T10:00", "end": "2026-07-01T12:00:00Z"}, NOW, BERLIN)

    assert period.length == timedelta(hours=4)


@tabled
def test_range__unreadable__names_the_field(query: dict[str, str], field: str) -> None:
    with pytest.raises(PeriodError, match=f"^{field}:"):
        parse_period(query, NOW, BERLIN)


def test_days__by_the_calendar_of_the_reader__against_the_same_part_of_the_one_before() -> None:
    yesterday, today = (parse_period({"range": name}, NOW, BERLIN) for name in ("yesterday", "today"))

    midnight = datetime(2026, 11, 22, 23, tzinfo=UTC)
    assert (yesterday.start, yesterday.end, today.start) == (midnight - timedelta(days=1), midnight, midnight)
    assert today.before().start == midnight - timedelta(days=1)
    assert today.before().end == today.end - timedelta(days=1)


def test_month__before__is_the_same_part_of_the_month_before() -> None:
    before = parse_period({"range": "month"}, NOW, BERLIN).before()

    assert before.start == datetime(2026, 10, 1, tzinfo=UTC)
    assert before.end == datetime(2026, 10, 23, 19, 30, 6, tzinfo=UTC)


@given(st.sampled_from([*LABELS]), st.integers(10**9, 4 * 10**9))
def test_range__any__is_the_same_from_its_parameters_and_follows_the_one_before(name: str, seconds: int) -> None:
    now = datetime.fromtimestamp(seconds, UTC)
    period = parse_period({"range": name}, now, UTC)

    # Days and weeks are those of the reader's zone.
    assert parse_period(period.parameters, now, UTC) == period
    assert period.before().end <= period.start
    own = parse_period({"start": period.before().start.isoformat(), "end": now.isoformat()}, now, UTC)
    assert parse_period(own.parameters, now, BERLIN) == own


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=10))
def test_range__any_text__is_a_range_or_a_clear_error(start: str, end: str, name: str) -> None:
    try:
        period = parse_period({"start": start, "end": end, "range": name}, NOW, BERLIN)
    except PeriodError as error:
        assert str(error).partition(":")[0] in ("start", "end", "range")
    else:
        assert period.start < period.end
