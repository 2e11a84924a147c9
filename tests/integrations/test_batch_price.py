"""The price of a batch: the tier of the catalogs, else half of every rate, to the last digit."""

from __future__ import annotations

from decimal import Decimal

from integrations.pricing.batch_price import batch_cost
from integrations.pricing.cost import Price
from integrations.providers.usage import Usage

USAGE = Usage(prompt_tokens=1_000_003, completion_tokens=7, cache_read_tokens=3, cache_write_tokens=1_000)


def test_price__without_a_tier_for_batches__is_halved() -> None:
    price = Price(Decimal("0.1507"), Decimal("0.6013"), Decimal("0.0751"), source="manual")

    cost = batch_cost(USAGE, price)

    assert cost is not None
    assert cost.input == Decimal("0.0752746500")
    assert cost.cache_write == Decimal("0.0000753500")
    assert cost.cache_read == Decimal("0.0000001126")  # 0.00000011265, rounded to the even digit
    assert cost.output == Decimal("0.0000021046")
    assert (cost.total, cost.source) == (cost.input + cost.cache_write + cost.cache_read + cost.output, "manual")


def test_price__with_a_tier_for_batches__is_that_of_the_tier() -> None:
    terms = {"tiers": [{"service_tier": "batch", "rates": {"input": "0.1", "output": "0.2"}}]}
    price = Price(Decimal(1), Decimal(2), terms=terms)

    cost = batch_cost(Usage(prompt_tokens=10, completion_tokens=10), price)

    assert cost is not None
    assert cost.total == Decimal("0.0000030000")


def test_price__with_further_rates_and_fees__halves_the_rates_alone() -> None:
    terms = {
        "rates": {"cache_write_1h": "6"},
        "fees": {"search_medium": "0.01"},
        "tiers": [{"above_tokens": 100, "rates": {"input": "4"}}],
    }
    price = Price(Decimal(2), Decimal(8), terms=terms)
    usage = Usage(prompt_tokens=200, cache_write_tokens=50, cache_write_1h_tokens=50, searches=2)

    cost = batch_cost(usage, price)

    assert cost is not None
    assert cost.input == Decimal("0.0003000000")
    assert cost.cache_write == Decimal("0.0001500000")
    assert cost.other == Decimal("0.0200000000")


def test_cost__without_a_price__is_unknown() -> None:
    assert batch_cost(USAGE, None) is None
