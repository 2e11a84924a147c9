"""Tests that usage payloads of providers give costs equal, digit by digit, to arithmetic done by hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.pricing.cost import Cost, Price, cost_of
from integrations.pricing.lookup import find_price
from integrations.providers.common.usage import read_usage
from integrations.providers.usage import Usage

GPT_4O = Price(Decimal("2.5"), Decimal("10"), Decimal("1.25"))
CLAUDE = Price(Decimal("3"), Decimal("15"), Decimal("0.3"), Decimal("3.75"))
MINI = Price(Decimal("0.15"), Decimal("0.6"), Decimal("0.075"))
BARE = Price(Decimal("1"), Decimal("2"))
FREE = Price(Decimal(0), Decimal(0))

# A case has a usage payload, the price, then input, cache read, cache write, output and total in US dollars.
GOLDEN: list[tuple[dict[str, Any], Price, list[str]]] = [
    (
        {"prompt_tokens": 1000, "completion_tokens": 500},
        GPT_4O,
        ["0.0025000000", "0.0000000000", "0.0000000000", "0.0050000000", "0.0075000000"],
    ),
    (  # The prompt has 1,117 fresh and 1,024 cached tokens.
        {"prompt_tokens": 2141, "completion_tokens": 37, "prompt_tokens_details": {"cached_tokens": 1024}},
        GPT_4O,
        ["0.0027925000", "0.0012800000", "0.0000000000", "0.0003700000", "0.0044425000"],
    ),
    (  # The prompt has 100 fresh, 200 read and 700 written tokens.
        {
            "prompt_tokens": 1000,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 700},
        },
        CLAUDE,
        ["0.0003000000", "0.0000600000", "0.0026250000", "0.0001500000", "0.0031350000"],
    ),
    (  # Cache classes without a price of their own cost the same as input.
        {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_cache_hit_tokens": 400},
        BARE,
        ["0.0006000000", "0.0004000000", "0.0000000000", "0.0000000000", "0.0010000000"],
    ),
    (  # xAI counts reasoning beside completion: 45 + 255 tokens of output.
        {
            "prompt_tokens": 456,
            "completion_tokens": 45,
            "total_tokens": 756,
            "prompt_tokens_details": {"cached_tokens": 406},
            "completion_tokens_details": {"reasoning_tokens": 255},
        },
        MINI,
        ["0.0000075000", "0.0000304500", "0.0000000000", "0.0001800000", "0.0002179500"],
    ),
    # The provider reports more cached tokens than sent ones, which must not make a cost negative or count a token
    # twice.
    (
        {"prompt_tokens": 347, "completion_tokens": 18, "prompt_tokens_details": {"cached_tokens": 403}},
        GPT_4O,
        ["0.0000000000", "0.0004337500", "0.0000000000", "0.0001800000", "0.0006137500"],
    ),
    (  # The usage is one token of the cheapest kind.
        {"prompt_tokens": 1, "completion_tokens": 0},
        MINI,
        ["0.0000001500", "0.0000000000", "0.0000000000", "0.0000000000", "0.0000001500"],
    ),
    (
        {"prompt_tokens": 10**9, "completion_tokens": 10**9},
        CLAUDE,
        ["3000.0000000000", "0.0000000000", "0.0000000000", "15000.0000000000", "18000.0000000000"],
    ),
    ({"prompt_tokens": 5, "completion_tokens": 5}, FREE, ["0.0000000000"] * 5),
    ({"prompt_tokens": 0, "completion_tokens": 0}, GPT_4O, ["0.0000000000"] * 5),
]


@pytest.mark.parametrize(("payload", "price", "expected"), GOLDEN)
def test_cost_of__golden_payloads__to_the_last_digit(
    payload: dict[str, Any], price: Price, expected: list[str]
) -> None:
    usage = read_usage(payload)
    assert usage is not None
    cost = cost_of(usage, price)
    assert [
        f"{part:f}" for part in (cost.input, cost.cache_read, cost.cache_write, cost.output, cost.total)
    ] == expected


def test_cost_of__more_cached_than_prompt__never_negative() -> None:
    cost = cost_of(Usage(prompt_tokens=10, cache_read_tokens=20, cache_write_tokens=5), GPT_4O)
    assert cost.input == 0


_tokens = st.integers(0, 10**7)
_price = st.decimals(0, 1000, places=10, allow_nan=False)


@given(_tokens, _tokens, _tokens, _tokens, _price, _price, _price, _price)
def test_cost_of__any_usage__total_is_the_sum_and_close_to_the_exact_value(
    fresh: int,
    read: int,
    write: int,
    output: int,
    price_in: Decimal,
    price_out: Decimal,
    p_read: Decimal,
    p_write: Decimal,
) -> None:
    usage = Usage(fresh + read + write, output, cache_read_tokens=read, cache_write_tokens=write)
    cost: Cost = cost_of(usage, Price(price_in, price_out, p_read, p_write))
    assert cost.total == cost.input + cost.cache_read + cost.cache_write + cost.output
    exact = (fresh * price_in + read * p_read + write * p_write + output * price_out) / 1_000_000
    assert abs(cost.total - exact) <= Decimal("0.0000000002")


TABLE = {
    ("openai", "gpt-4o"): GPT_4O,
    ("openai", "gpt-4o-2024-05-13"): CLAUDE,
    ("openai", "gpt-3.5-turbo"): MINI,
    ("mistral", "mistral-small-latest"): BARE,
    ("together", "meta-llama/llama-3.3-70b"): MINI,
    ("openai", "ft:gpt-4o-2024-08-06"): CLAUDE,
    ("sandbox", "*"): BARE,
}


@pytest.mark.parametrize(
    ("provider", "model", "price"),
    [
        ("openai", "gpt-4o", GPT_4O),
        ("openai", "gpt-4o-2024-05-13", CLAUDE),
        ("openai", "gpt-4o-2024-08-06", GPT_4O),
        ("openai", "gpt-3.5-turbo-0125", MINI),
        ("openai", "GPT-4o", GPT_4O),
        ("openai", "ft:gpt-4o-2024-08-06:acme::Ab12", CLAUDE),
        ("openai", "ft:gpt-4o:acme::Ab12", None),
        ("azure_openai", "gpt-4o-2024-08-06", GPT_4O),
        ("azure_openai", "gpt-35-turbo", MINI),
        ("mistral", "mistral-small-2503", BARE),
        ("together", "meta-llama/Llama-3.3-70B", MINI),
        ("sandbox", "echo", BARE),
        ("openai", "gpt-4o-mini", None),
        ("openai", "gpt-4", None),
        ("groq", "gpt-4o", None),
        ("nobody", "", None),
    ],
)
def test_find_price__names_and_versions__price_or_unknown(provider: str, model: str, price: Price | None) -> None:
    assert find_price(TABLE, provider, model) is price
