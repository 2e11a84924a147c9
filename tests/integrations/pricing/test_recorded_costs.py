"""Compares the recorded cost of every recorded answer with the provider's own statement, or else with `plain_bill`,
which shares no code with the product."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from integrations.pricing import catalog_a, catalog_b
from integrations.pricing.cost import Cost, Price, known_cost
from integrations.pricing.lookup import find_entry
from integrations.providers.base import ChatRequest
from integrations.providers.errors import ProviderError
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.pricing import plain_bill
from tests.recordings import Recording, recordings_of, shared_file

pytestmark = pytest.mark.recordings

# Each API is mapped to the function of `plain_bill` that counts its tokens.
COUNTERS: dict[str, Callable[[bytes], plain_bill.Counts | None]] = {
    "openai.chat_completions": plain_bill.openai_counts,
    "anthropic.messages": plain_bill.anthropic_counts,
    "google.generateContent": plain_bill.google_counts,
    "google.streamGenerateContent": plain_bill.google_counts,
    "bedrock.converse": plain_bill.bedrock_counts,
    "bedrock.converse_stream": plain_bill.bedrock_counts,
    "cohere.v2_chat": plain_bill.cohere_counts,
}
ANSWERS = [recording for recording in recordings_of(*COUNTERS) if recording.status == 200]
STATED = [recording for recording in ANSWERS if plain_bill.stated(recording.body)]
# The product rounds each class to ten decimal places.
ROUNDING = Fraction(5, 10**10)


def usage_of(recording: Recording, body: bytes) -> Usage | None:
    """Returns the usage that the adapter reads, None for an answer that failed before anything was counted."""
    request = ChatRequest(recording.model, recording.stream, b"{}", {"model": recording.model, "messages": []})
    adapter = adapter_for(recording.provider)
    try:
        if not recording.stream:
            return adapter.parse_response(request, body).usage
        stream = adapter.stream(request)
        stream.feed(body)
        stream.closing()
    except ProviderError as error:
        return error.usage
    return stream.usage


@cache
def catalogs() -> tuple[Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Price]]:
    """Returns the raw entries of both catalogs by provider and model, and the product's prices of them."""
    first, second = shared_file("pricing", "catalog_a.json"), shared_file("pricing", "catalog_b.json")
    assert first is not None
    assert second is not None
    decoded = json.loads(first.read_bytes()), json.loads(second.read_bytes())
    raw_a: dict[Any, Any] = {}
    for provider, model, fields in catalog_a.models(decoded[0]):
        raw_a.setdefault((provider, model), fields)
    raw_b = {(provider, model): fields.get("cost") for provider, model, fields in catalog_b.models(decoded[1])}
    prices: dict[Any, Price] = {}
    for source, entries in (("catalog_a", catalog_a.parse(decoded[0])), ("catalog_b", catalog_b.parse(decoded[1]))):
        for one in entries:
            price = Price(one.input, one.output, one.cache_read, one.cache_write, one.terms, source)
            prices.setdefault((one.provider, one.model), price)
    return raw_a, raw_b, prices


def priced(recording: Recording, usage: Usage) -> tuple[Cost | None, Any]:
    """Returns the product's cost, and the catalog's entry that it follows from."""
    prices = catalogs()[2]
    key = find_entry(prices, recording.provider, recording.model)
    return known_cost(usage, prices[key] if key is not None else None), key


@pytest.mark.parametrize("recording", STATED, ids=str)
def test_record__answer_that_states_its_cost__equals_it_to_the_last_digit(recording: Recording) -> None:
    usage = usage_of(recording, recording.body)
    assert usage is not None
    cost, _ = priced(recording, usage)
    assert cost is not None
    stated = plain_bill.stated(recording.body)
    assert stated is not None
    assert cost.total == Decimal(round(stated * 10**10)).scaleb(-10)
    assert cost.source == "provider"
    assert cost.other == cost.total


@pytest.mark.parametrize("recording", [one for one in ANSWERS if one not in STATED], ids=str)
def test_record__answer_without_a_statement__equals_another_computation(recording: Recording) -> None:
    usage, counts = usage_of(recording, recording.body), COUNTERS[recording.api](recording.body)
    if usage is None or not usage.is_billed:
        # OpenRouter's free models state 0, and an answer without counts costs nothing.
        assert counts is None or not plain_bill.stated(recording.body)
        return
    assert counts is not None
    cost, key = priced(recording, usage)
    if usage.stated_cost is not None:
        assert cost == Cost(source="provider")
        return
    raw_a, raw_b, _ = catalogs()
    if key is None:
        assert cost is None
        return
    assert cost is not None
    expected = (
        plain_bill.cost_by_a(counts, raw_a[key], size=usage.search_context_size or "medium")
        if cost.source == "catalog_a"
        else plain_bill.cost_by_b(counts, raw_b[key])
    )
    assert abs(Fraction(cost.total) - expected) <= ROUNDING
