"""The cost of a usage in whole units: the same as with decimals, wherever there are units."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.record import cost_texts
from integrations.pricing.cost import Price, known_cost, token_units
from integrations.providers.usage import Usage
from tests.tables.cases import tabled

RATES = st.decimals(0, 10_000, places=4) | st.decimals(0, 100, places=6) | st.just(Decimal("1E+3"))
COUNTS = st.integers(0, 5_000) | st.integers(0, 10**15)
TERMS = st.sampled_from(
    [
        {},
        {"rates": {"reasoning": "7"}},
        {"fees": {"search_medium": "0.01"}},
        {"fees": {"request": "0.01"}},
        {"tiers": [{"service_tier": "flex", "rates": {"input": "1"}}]},
        {"tiers": [{"above_tokens": 1000, "rates": {"input": "1"}}]},
    ]
)


@given(of_input=RATES, of_output=RATES, terms=TERMS, prompt=COUNTS, completion=COUNTS)
def test_units__of_any_price__give_the_cost_of_decimals(
    of_input: Decimal, of_output: Decimal, terms: Any, prompt: int, completion: int
) -> None:
    price = Price(of_input, of_output, terms=terms)
    units = token_units(price)
    if units is None:
        return

    cost = known_cost(Usage(prompt, completion), price)

    texts = units.texts(prompt, completion)
    assert (texts is None) is (cost is None)
    if texts is not None:
        whole = cost_texts(cost)
        assert texts == (whole[0], whole[3], whole[5])
        assert whole[1] == whole[2] == whole[4] == "0.0000000000"


@tabled
def test_units__of_a_price_that_needs_decimals__are_none(price: Price | None) -> None:
    assert token_units(price) is None


def test_units__of_the_usual_price() -> None:
    units = token_units(Price(Decimal("2.5"), Decimal(10), terms={"rates": {"reasoning": "12"}}))

    assert units is not None
    assert units.texts(1000, 333) == ("0.0025000000", "0.0033300000", "0.0058300000")
