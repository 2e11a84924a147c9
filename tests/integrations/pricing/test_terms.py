"""Tests tiers, fees and further token classes: costs by entries with real figures are compared with costs computed by
hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from integrations.pricing import catalog_a, catalog_b
from integrations.pricing.cost import Cost, Price, cost_of
from integrations.pricing.entries import PriceEntry, Refusal
from integrations.providers.usage import Usage
from tests.tables.cases import stored, tabled

# The prices of GPT-5.4 have the form of catalog A, in US dollars per token.
GPT_5_4 = stored(__file__, "GPT_5_4")
SONNET_4_5 = {
    "litellm_provider": "anthropic",
    "input_cost_per_token": 3e-06,
    "output_cost_per_token": 1.5e-05,
    "cache_read_input_token_cost": 3e-07,
    "cache_creation_input_token_cost": 3.75e-06,
    "cache_creation_input_token_cost_above_1hr": 6e-06,
    "input_cost_per_token_batches": 1.5e-06,
    "output_cost_per_token_batches": 7.5e-06,
    "search_context_cost_per_query": {
        "search_context_size_low": 0.01,
        "search_context_size_medium": 0.01,
        "search_context_size_high": 0.01,
    },
}
SONNET_4_AT_BEDROCK = {
    "litellm_provider": "bedrock_converse",
    "input_cost_per_token": 3e-06,
    "output_cost_per_token": 1.5e-05,
    "input_cost_per_token_above_200k_tokens": 6e-06,
    "output_cost_per_token_above_200k_tokens": 2.25e-05,
    "cache_read_input_token_cost": 3e-07,
    "cache_read_input_token_cost_above_200k_tokens": 6e-07,
    "cache_creation_input_token_cost": 3.75e-06,
    "cache_creation_input_token_cost_above_200k_tokens": 7.5e-06,
}
HAIKU_5_5 = {
    "litellm_provider": "anthropic",
    "input_cost_per_token": 1e-07,
    "output_cost_per_token": 5e-07,
    "cache_creation_input_token_cost": 1.25e-07,
    "cache_creation_input_token_cost_above_1hr": 2e-07,
    "input_cost_per_token_above_100k_tokens": 5e-07,
    "output_cost_per_token_above_100k_tokens": 2.5e-06,
    "cache_creation_input_token_cost_above_100k_tokens": 6.25e-07,
    "cache_creation_input_token_cost_above_1hr_above_100k_tokens": 1e-06,
}
GEMINI_2_5_FLASH = stored(__file__, "GEMINI_2_5_FLASH")
GPT_AUDIO = {
    "litellm_provider": "openai",
    "input_cost_per_token": 2.5e-06,
    "output_cost_per_token": 1e-05,
    "input_cost_per_audio_token": 3.2e-05,
    "output_cost_per_audio_token": 6.4e-05,
}
SONAR = {
    "litellm_provider": "perplexity",
    "input_cost_per_token": 1e-06,
    "output_cost_per_token": 1e-06,
    "search_context_cost_per_query": {
        "search_context_size_low": 0.005,
        "search_context_size_medium": 0.008,
        "search_context_size_high": 0.012,
    },
}
SONAR_ONLINE = {
    "litellm_provider": "perplexity",
    "input_cost_per_token": 0,
    "output_cost_per_token": 2.8e-07,
    "input_cost_per_request": 0.005,
}
SEARCH_API = {
    "litellm_provider": "openai",
    "input_cost_per_token": 1.25e-06,
    "output_cost_per_token": 1e-05,
    "search_context_cost_per_query": {
        "search_context_size_low": 0.01,
        "search_context_size_medium": 0.01,
        "search_context_size_high": 0.01,
    },
}
QWEN_PLUS = {
    "litellm_provider": "openai",
    "input_cost_per_token": 4e-07,
    "output_cost_per_token": 1.2e-06,
    "output_cost_per_reasoning_token": 4e-06,
}
QWEN_CODER = {
    "litellm_provider": "openai",
    "tiered_pricing": [
        {"range": [0, 32000.0], "input_cost_per_token": 3e-07, "output_cost_per_token": 1.5e-06},
        {"range": [32000.0, 128000.0], "input_cost_per_token": 5e-07, "output_cost_per_token": 2.5e-06},
        {"range": [128000.0, 256000.0], "input_cost_per_token": 8e-07, "output_cost_per_token": 4e-06},
    ],
}
GEMINI_IMAGE = {
    "litellm_provider": "gemini",
    "input_cost_per_token": 3e-07,
    "output_cost_per_token": 2.5e-06,
    "output_cost_per_image_token": 3e-05,
    "input_cost_per_image_token": 6e-07,
}
FAST_OPUS = {
    "litellm_provider": "anthropic",
    "input_cost_per_token": 5e-06,
    "output_cost_per_token": 2.5e-05,
    "provider_specific_entry": {"us": 1.1, "fast": 2},
}
# The prices of Grok have the form of catalog B, in US dollars per 1,000,000 tokens.
GROK_B = {"cost": {"input": 3, "output": 15, "tiers": [{"tier": {"size": 128000}, "input": 6, "output": 30}]}}
OLD_B = {"cost": {"input": 1.25, "output": 10, "context_over_200k": {"input": 2.5, "output": 15}}}
FAST_B = {
    "cost": {"input": 2.5, "output": 15},
    "experimental": {
        "modes": {"fast": {"cost": {"input": 5, "output": 30}, "provider": {"body": {"service_tier": "priority"}}}}
    },
}
AUDIO_B = {"cost": {"input": 0.3, "output": 2.5, "input_audio": 1, "reasoning": 3.5}}


def price_a(fields: dict[str, Any], model: str = "m") -> Price:
    [found] = catalog_a.read({model: {"mode": "chat", **fields}})
    return _price(found)


def price_b(fields: dict[str, Any]) -> Price:
    [found] = catalog_b.read({"openai": {"models": {"m": fields}}})
    return _price(found)


def _price(found: PriceEntry | Refusal) -> Price:
    assert isinstance(found, PriceEntry)
    return Price(found.input, found.output, found.cache_read, found.cache_write, found.terms)


K = 1000
# A case has a description, the price, the usage, and the expected dollars.
CASES: list[tuple[str, Price, Usage, str]] = [
    ("standard", price_a(GPT_5_4), Usage(100 * K, K), "0.265"),
    ("at the bound of the context tier", price_a(GPT_5_4), Usage(272 * K, K), "0.695"),
    ("above 272k: the whole request", price_a(GPT_5_4), Usage(272 * K + 1, K), "1.382505"),
    ("above 272k, cached", price_a(GPT_5_4), Usage(300 * K, K, cache_read_tokens=200 * K), "0.6225"),
    ("flex", price_a(GPT_5_4), Usage(100 * K, K, service_tier="flex"), "0.1325"),
    ("flex above 272k", price_a(GPT_5_4), Usage(300 * K, K, service_tier="flex"), "0.76125"),
    ("flex, cached", price_a(GPT_5_4), Usage(100 * K, 0, cache_read_tokens=100 * K, service_tier="flex"), "0.013"),
    ("priority", price_a(GPT_5_4), Usage(100 * K, K, service_tier="priority"), "0.53"),
    # The catalog has no priority price for long prompts, so the standard price for long prompts applies.
    ("priority above 272k", price_a(GPT_5_4), Usage(300 * K, K, service_tier="priority"), "1.5225"),
    ("batch", price_a(GPT_5_4), Usage(100 * K, K, service_tier="batch"), "0.1325"),
    ("a service tier without a price", price_a(GPT_5_4), Usage(100 * K, K, service_tier="scale"), "0.265"),
    ("cache write of five minutes", price_a(SONNET_4_5), Usage(K, 0, cache_write_tokens=K), "0.00375"),
    (
        "cache writes of an hour and of five minutes",
        price_a(SONNET_4_5),
        Usage(3 * K, 0, cache_write_tokens=2 * K, cache_write_1h_tokens=K),
        "0.01275",
    ),
    ("Anthropic's searches", price_a(SONNET_4_5), Usage(K, 0, searches=3), "0.033"),
    ("Anthropic's batch", price_a(SONNET_4_5), Usage(K, K, service_tier="batch"), "0.009"),
    (
        "above 200k with what was cached",
        price_a(SONNET_4_AT_BEDROCK),
        Usage(210 * K, K, cache_read_tokens=100 * K, cache_write_tokens=100 * K),
        "0.8925",
    ),
    (
        "an hour above 100k",
        price_a(HAIKU_5_5),
        Usage(200 * K, 0, cache_write_tokens=200 * K, cache_write_1h_tokens=100 * K),
        "0.1625",
    ),
    ("audio sent to Gemini", price_a(GEMINI_2_5_FLASH), Usage(3 * K, 0, audio_prompt_tokens=2 * K), "0.0023"),
    (
        "audio from Gemini's cache",
        price_a(GEMINI_2_5_FLASH),
        Usage(3 * K, 0, 2 * K, audio_prompt_tokens=2 * K, cache_read_audio_tokens=K),
        "0.00113",
    ),
    (
        "fresh audio and audio from Gemini's cache",
        price_a(GEMINI_2_5_FLASH),
        Usage(4 * K, 0, 2 * K, audio_prompt_tokens=2 * K, cache_read_audio_tokens=K),
        "0.00143",
    ),
    (
        "audio at Gemini's flex",
        price_a(GEMINI_2_5_FLASH),
        Usage(3 * K, K, audio_prompt_tokens=2 * K, service_tier="flex"),
        "0.0024",
    ),
    (
        "reasoning at the output's price, at flex too",
        price_a(GEMINI_2_5_FLASH),
        Usage(0, K, reasoning_tokens=K, service_tier="flex"),
        "0.00125",
    ),
    ("Gemini's search", price_a(GEMINI_2_5_FLASH), Usage(K, 0, searches=1), "0.0353"),
    (
        "audio both ways",
        price_a(GPT_AUDIO),
        Usage(2 * K, 2 * K, audio_prompt_tokens=K, audio_completion_tokens=K),
        "0.1085",
    ),
    ("images drawn", price_a(GEMINI_IMAGE), Usage(0, 1300, image_completion_tokens=1290), "0.038725"),
    ("images sent", price_a(GEMINI_IMAGE), Usage(2 * K, 0, image_prompt_tokens=K), "0.0009"),
    ("reasoning", price_a(QWEN_PLUS), Usage(0, 2 * K, reasoning_tokens=K), "0.0052"),
    ("a small search", price_a(SONAR), Usage(K, 0, searches=1, search_context_size="low"), "0.006"),
    ("a large search", price_a(SONAR), Usage(K, 0, searches=1, search_context_size="high"), "0.013"),
    ("a search of unknown size", price_a(SONAR), Usage(K, 0, searches=1, search_context_size="huge"), "0.009"),
    ("a fee per request", price_a(SONAR_ONLINE), Usage(K, K), "0.00528"),
    ("OpenAI's models that always search", price_a(SEARCH_API, "gpt-5-search-api-2025-10-14"), Usage(K, K), "0.02125"),
    ("no fee for what was not billed", price_a(SONAR_ONLINE), Usage(), "0"),
    ("the first range", price_a(QWEN_CODER), Usage(32 * K, 0), "0.0096"),
    ("the second range", price_a(QWEN_CODER), Usage(32 * K + 1, K), "0.0185005"),
    ("the last range", price_a(QWEN_CODER), Usage(200 * K, K), "0.164"),
    ("fast mode", price_a(FAST_OPUS), Usage(K, K, service_tier="fast"), "0.06"),
    ("catalog B above 128k", price_b(GROK_B), Usage(128 * K + 1, K), "0.798006"),
    ("catalog B at 128k", price_b(GROK_B), Usage(128 * K, K), "0.399"),
    ("catalog B's older form", price_b(OLD_B), Usage(300 * K, K), "0.765"),
    ("catalog B's mode", price_b(FAST_B), Usage(100 * K, K, service_tier="priority"), "0.53"),
    ("catalog B's audio and reasoning", price_b(AUDIO_B), Usage(K, K, 0, 0, K, audio_prompt_tokens=K), "0.0045"),
]


@pytest.mark.parametrize(
    ("price", "usage", "dollars"), [case[1:] for case in CASES], ids=[case[0].replace(" ", "_") for case in CASES]
)
def test_cost_of__tier_fee_or_class__by_hand(price: Price, usage: Usage, dollars: str) -> None:
    cost: Cost = cost_of(usage, price)
    assert cost.total == Decimal(dollars)
    assert cost.total == cost.input + cost.cache_read + cost.cache_write + cost.output + cost.other


@tabled
def test_read__nonsense_in_a_tier__refused_by_name(fields: dict[str, Any], problem: str) -> None:
    [found] = catalog_a.read({"m": {"mode": "chat", **fields}})
    assert isinstance(found, Refusal)
    assert found.problem == problem


def test_read__tiers_of_another_form__left_out() -> None:
    odd = {"tiered_pricing": [1, {"range": "x"}, {"range": []}], "search_context_cost_per_query": [1]}
    assert price_a({**GPT_AUDIO, **odd}).terms == price_a(GPT_AUDIO).terms
    odd_b = {"tiers": [3, {"tier": 1}, {"tier": {"type": "time", "size": 5}, "input": 9}], "context_over_200k": 4}
    assert price_b({"cost": {"input": 1, "output": 2, **odd_b}, "experimental": {"modes": 1}}).terms == {}


def test_terms__what_equals_the_base__goes_without_saying() -> None:
    assert price_a({**GEMINI_2_5_FLASH, "search_context_cost_per_query": None}).terms == {
        "rates": {"cache_read_audio": "0.1", "input_audio": "1"},
        "tiers": [{"service_tier": "flex", "rates": {"input": "0.15", "input_audio": "0.5", "output": "1.25"}}],
    }
