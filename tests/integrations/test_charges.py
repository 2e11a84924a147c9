"""Tests the charges in answers of every dialect: stated costs, searches, service tiers, and classes of tokens."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from integrations.pricing.cost import BY_PROVIDER, MIXED, Cost, Price, known_cost
from integrations.providers.common.charges import searches, served_tier, stated_cost
from integrations.providers.common.usage import read_usage
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, chunk, completion, sse
from tests.tables.cases import tabled

TOKENS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.0076509169000000005}, "0.0076509169000000005"),
        ({"cost": "0.25"}, "0.25"),
        ({"cost": 0, "is_byok": False}, "0"),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, "0.021"),
        ({"cost": 0.001, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, "0.001"),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, None),
        ({"cost": 0, "is_byok": True}, None),
        ({"cost": {"input_tokens_cost": 5e-05, "request_cost": 0.006, "total_cost": 0.00619}}, "0.00619"),
        ({"cost": {"total_cost": 0}}, None),
        ({"cost": {"total_cost": "much"}}, None),
        ({"cost_in_usd_ticks": 4077500}, "0.00040775"),
        ({"cost_in_usd_ticks": 0}, None),
        ({"cost_in_usd_ticks": True}, None),
        ({"estimated_cost": 1.25e-06}, "0.00000125"),
        ({"cost": -1}, None),
        ({"cost": float("nan")}, None),
        ({"cost": float("inf")}, None),
        ({"cost": 1e7}, None),
        ({"cost": True}, None),
        ({"cost": []}, None),
        ({}, None),
    ],
)
def test_stated_cost__as_vendors_write_it__dollars_or_nothing(usage: dict[str, Any], cost: str | None) -> None:
    assert stated_cost(usage) == (None if cost is None else Decimal(cost))


@tabled
def test_served_tier__names__in_the_words_of_prices(name: object, tier: str) -> None:
    assert served_tier(name) == tier


@tabled
def test_searches__as_vendors_count_them__number_and_size(usage: dict[str, Any], found: tuple[int, str]) -> None:
    assert searches(usage) == found


def test_read_usage__details__never_beyond_their_wholes() -> None:
    usage = {
        **TOKENS,
        "prompt_tokens_details": {"audio_tokens": 99, "image_tokens": 99, "cache_write_tokens": 4},
        "completion_tokens_details": {"audio_tokens": 99, "image_tokens": 99},
        "cache_creation": {"ephemeral_1h_input_tokens": 99},
    }
    assert read_usage(usage) == Usage(
        10, 5, 0, 4, cache_write_1h_tokens=4, audio_prompt_tokens=10, audio_completion_tokens=5,
        image_prompt_tokens=10, image_completion_tokens=5,
    )  # fmt: skip


@pytest.mark.parametrize("provider", ["openai", "openrouter", "groq", "mistral", "openai_compatible"])
def test_openai_dialect__tier_and_cost__read_whole_and_streamed(provider: str) -> None:
    usage = {**TOKENS, "cost": 0.125}
    expected = Usage(10, 5, service_tier="flex", stated_cost=Decimal("0.125"))
    adapter = adapter_for(provider)
    body = json.dumps(completion(usage=usage, service_tier="flex")).encode()
    assert adapter.parse_response(chat_request(), body).usage == expected
    stream = adapter.stream(chat_request(stream=True))
    stream.feed(sse(chunk({"content": "a"}), chunk({}, finish="stop"), chunk(usage=usage, service_tier="flex")))
    stream.closing()
    assert stream.usage == expected


def test_known_cost__stated__wins_over_the_price_and_needs_none() -> None:
    usage = Usage(1000, 1000, stated_cost=Decimal("0.0076509169000000005"))
    stated = Cost(total=Decimal("0.0076509169"), other=Decimal("0.0076509169"), source=BY_PROVIDER)
    assert known_cost(usage, Price(Decimal(1), Decimal(2), source="manual")) == stated
    assert known_cost(usage, None) == stated


def test_cost__sum_of_attempts__source_of_all_or_mixed() -> None:
    one, other = Cost(total=Decimal(1), source="catalog_a"), Cost(total=Decimal(2), source=BY_PROVIDER)
    assert (one + one).source == "catalog_a"
    assert (one + other).source == MIXED
    assert (Cost() + other).source == BY_PROVIDER
    assert (other + Cost()).source == BY_PROVIDER
