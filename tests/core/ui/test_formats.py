from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from core.ui import formats
from tests.tables.cases import tabled


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"),
        (0, "$0"),
        (Decimal("238.7600000000"), "$238.76"),
        (Decimal("1234567.891"), "$1,234,567.89"),
        (Decimal("0.01"), "$0.01"),
        (Decimal("0.0031"), "$0.0031"),
        (0.00042, "$0.00042"),
        ("0.0000000001", "$0.0000000001"),
        (-3, "-$3.00"),
    ],
)
def test_money__any_size__is_read_at_a_glance(value: Any, shown: str) -> None:
    assert formats.money(value) == shown


@tabled
def test_duration__any_length__in_the_largest_units(milliseconds: float, shown: str) -> None:
    assert formats.duration(milliseconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 %"), (0.135, "13.5 %"), (1, "100 %"), (0.0001, "< 0.1 %"), (0.99999, "> 99.9 %"), (0.5, "50 %")],
)
def test_share__close_to_an_end__does_not_look_like_it(value: float, shown: str) -> None:
    assert formats.share(value) == shown


@tabled
def test_change__against_the_period_before__in_per_cent(now: Any, before: Any, shown: str) -> None:
    assert formats.change(now, before) == shown


def test_moment__in_the_readers_zone__keeps_utc_for_machines() -> None:
    with timezone.override(ZoneInfo("America/New_York")):
        shown = formats.moment(datetime(2025, 7, 1, 2, 30, 0, 5000, tzinfo=UTC))

    assert 'datetime="2025-07-01T02:30:00.005000Z"' in shown
    assert 'title="2025-06-30 22:30:00.005 EDT"' in shown
    assert ">30 Jun 2025 22:30<" in shown


@given(st.decimals(min_value=Decimal("0.0000000001"), max_value=10**9, places=10))
def test_money__any_amount__within_a_tenth_of_it(value: Decimal) -> None:
    shown = Decimal(formats.money(value).removeprefix("$").replace(",", ""))

    assert abs(shown - value) <= max(value / 10, Decimal("0.005")) or value < Decimal("0.01")
    assert shown > 0


@tabled
def test_age__any_time__to_the_minute(seconds: float, shown: str) -> None:
    assert formats.age(timezone.now() - timedelta(seconds=seconds)) == shown
