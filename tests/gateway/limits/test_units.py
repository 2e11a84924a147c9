"""Costs as integers: a record's cost, and the highest cost that a request may have."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.limits.units import MAX_UNITS, from_units, recorded_units, to_units
from gateway.pipeline.reservation import cost_units
from integrations.pricing.cost import Price

PRICES = st.decimals(min_value=0, max_value=10_000, places=8)
TOKENS = st.integers(min_value=0, max_value=10**7)


@given(cost=st.decimals(min_value=0, max_value=1_000_000, places=10))
def test_recorded_cost__with_all_its_places__to_the_last_digit(cost: Decimal) -> None:
    units = recorded_units(f"{cost:f}")
    assert units == to_units(cost)
    assert from_units(units) == cost


@pytest.mark.parametrize(
    ("cost", "units"),
    [("0", 0), ("12", 12 * 10**10), ("0.5", 5 * 10**9), ("0.00000000001", 1), ("1E-10", 1), ("9" * 20, MAX_UNITS)],
)
def test_recorded_cost__with_other_places__rounded_up(cost: str, units: int) -> None:
    assert recorded_units(cost) == units


def test_recorded_cost__beyond_64_bits__most_that_they_hold() -> None:
    assert recorded_units(f"{'9' * 12}.{'9' * 10}") == MAX_UNITS


@given(first=st.tuples(PRICES, PRICES), second=st.tuples(PRICES, PRICES), prompt=TOKENS, completion=TOKENS)
def test_estimated_cost__of_several_prices__dearest_rounded_up(
    first: tuple[Decimal, Decimal], second: tuple[Decimal, Decimal], prompt: int, completion: int
) -> None:
    dearest = max(price * prompt + output * completion for price, output in (first, second)) / 10**6
    expected = int((dearest * 10**10).to_integral_value(ROUND_CEILING))
    assert cost_units([Price(*first), None, Price(*second)], prompt, completion) == min(expected, MAX_UNITS)


def test_estimated_cost__without_a_price__nothing() -> None:
    assert cost_units([None], 10, 10) == 0
