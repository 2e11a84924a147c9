"""Reads catalog A: one object that maps a model's name to its prices in US dollars per token (LiteLLM's
`model_prices_and_context_window`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from integrations.pricing.entries import CatalogError, Figure, Place, PriceEntry, Refusal, entry
from integrations.providers.openai.compatible import DIALECTS

# The catalog's provider names, each with the gateway's name and the prefix that the catalog's model names have and the
# gateway's have not.
_PROVIDERS: Mapping[str, tuple[str, str]] = {
    "openai": ("openai", "openai/"),
    "text-completion-openai": ("openai", "openai/"),
    "azure": ("azure_openai", "azure/"),
    "azure_ai": ("azure_openai", "azure_ai/"),
    "anthropic": ("anthropic", "anthropic/"),
    "gemini": ("google", "gemini/"),
    "vertex_ai-language-models": ("google_vertex", "vertex_ai/"),
    "vertex_ai-anthropic_models": ("google_vertex", "vertex_ai/"),
    "vertex_ai-embedding-models": ("google_vertex", "vertex_ai/"),
    "vertex_ai-mistral_models": ("google_vertex", "vertex_ai/"),
    "vertex_ai-llama_models": ("google_vertex", "vertex_ai/"),
    "bedrock": ("bedrock", "bedrock/"),
    "bedrock_converse": ("bedrock", "bedrock/"),
    "mistral": ("mistral", "mistral/"),
    "cohere": ("cohere", "cohere/"),
    "cohere_chat": ("cohere", "cohere/"),
    # The catalog's name of the vendor is not that of its models.
    "amazon_nova": ("amazon_nova", "amazon-nova/"),
    **{name: (row.provider, f"{name}/") for row in DIALECTS if (name := row.catalogs[0])},
}
_MODES = frozenset({"chat", "completion", "responses"})
_IMAGES = "image_generation"
# The output of these operations costs nothing, and some rows leave its price out.
_WITHOUT_OUTPUT = frozenset({"embedding", "rerank", "moderation"})
# OpenAI's models count tokens of these operations; those of other vendors count images, seconds and steps, which some
# rows of the catalog give as tokens.
_COUNTED_BY_OPENAI = frozenset({_IMAGES, "audio_transcription"})
_OPENAI = frozenset({"openai", "azure_openai"})
_PRICED_MODES = _MODES | _WITHOUT_OUTPUT | _COUNTED_BY_OPENAI
_RATES: Mapping[str, str] = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
    "input_cost_per_audio_token": "input_audio",
    "output_cost_per_audio_token": "output_audio",
    "cache_read_input_audio_token_cost": "cache_read_audio",
    "input_cost_per_image_token": "input_image",
    "output_cost_per_image_token": "output_image",
    "output_cost_per_reasoning_token": "reasoning",
}
# The pattern splits a catalog's field name into the rate, the minimum length of the prompt in thousand tokens, and the
# service tier.
_FIELD = re.compile(
    rf"({'|'.join(sorted(_RATES, key=len, reverse=True))})(?:_above_(\d{{1,6}})k_tokens)?(?:_([a-z]+))?"
)
# The catalog's names of service tiers, each with the name that answers use.
_SERVICE_TIERS = {"batches": "batch"}
_SEARCHES = "search_context_cost_per_query"
_FEES = {
    "search_context_size_low": "search_low",
    "search_context_size_medium": "search_medium",
    "search_context_size_high": "search_high",
}
# OpenAI's search models search for every answer and do not report it in the usage:
# https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat. The fee is the same for every size.
_ALWAYS_SEARCHING = re.compile(r"gpt-.+-search-(?:preview|api)")
_PER_MILLION = 6


def parse(catalog: Any) -> Iterator[PriceEntry]:
    return (found for found in read(catalog) if isinstance(found, PriceEntry))


def read(catalog: Any) -> Iterator[PriceEntry | Refusal]:
    for provider, model, fields in models(catalog, _PRICED_MODES):
        mode = fields.get("mode")
        if mode in _COUNTED_BY_OPENAI and provider not in _OPENAI:
            continue
        free: dict[str, Any] = {"output_cost_per_token": 0.0} if mode in _WITHOUT_OUTPUT else {}
        if mode == _IMAGES:
            free["output_cost_per_token"] = fields.get("output_cost_per_image_token")
        found = entry(provider, model, _figures(model, {**free, **fields}), scale=_PER_MILLION)
        if found is not None:
            yield found


def _figures(model: str, fields: Mapping[str, Any]) -> Iterator[Figure]:
    for field, value in fields.items():
        place = _place(field)
        if place is not None:
            yield Figure(field, place, value)
    yield Figure("input_cost_per_request", Place("request"), fields.get("input_cost_per_request"))
    yield Figure("input_cost_per_query", Place("search_medium"), fields.get("input_cost_per_query"))
    searches = fields.get(_SEARCHES)
    if isinstance(searches, Mapping):
        for field, name in _FEES.items():
            yield Figure(f"{_SEARCHES}.{field}", Place(name), searches.get(field))
        if _ALWAYS_SEARCHING.match(model):
            yield Figure(_SEARCHES, Place("request"), searches.get("search_context_size_medium"))
    ranges = fields.get("tiered_pricing")
    for step in ranges if isinstance(ranges, list) else ():
        yield from _of_range(step)
    yield from _of_fast_mode(fields)


@cache
def _place(field: str) -> Place | None:
    found = _FIELD.fullmatch(field)
    if found is None:
        return None
    rate, thousands, service_tier = found.groups()
    return Place(
        _RATES[rate], _SERVICE_TIERS.get(service_tier, service_tier or ""), int(thousands) * 1000 if thousands else 0
    )


def _of_range(step: Any) -> Iterator[Figure]:
    """Yields the prices for prompts of more tokens than the first number of `range` (Alibaba's form)."""
    bounds = step.get("range") if isinstance(step, Mapping) else None
    if not isinstance(bounds, list) or not bounds or not isinstance(bounds[0], (int, float)):
        return
    above = max(int(bounds[0]), 0)
    for field, value in step.items():
        place = _place(field)
        if place is not None and not place.above_tokens:
            yield Figure(f"tiered_pricing.{field}", place._replace(above_tokens=above), value)


def _of_fast_mode(fields: Mapping[str, Any]) -> Iterator[Figure]:
    """Yields the prices of Anthropic's fast mode, which the catalog gives as a factor on all prices."""
    special = fields.get("provider_specific_entry")
    factor = special.get("fast") if isinstance(special, Mapping) else None
    if not isinstance(factor, (int, float)):
        return
    for field, value in fields.items():
        place = _place(field)
        if place is not None and not place.service_tier and isinstance(value, (int, float)):
            cost = Decimal(str(value)) * Decimal(str(factor))
            yield Figure(f"{field} in fast mode", place._replace(service_tier="fast"), cost)


def models(catalog: Any, modes: Collection[str] = _MODES) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yields (provider, model, fields) of known providers' models of these modes, usually chat models, under the
    gateway's names. Raises CatalogError if `catalog` has another form."""
    if not isinstance(catalog, dict) or not catalog:
        raise CatalogError("catalog_a is not an object of models")
    for name, fields in catalog.items():
        if isinstance(fields, dict) and name != "sample_spec" and fields.get("mode") in modes:
            known = _PROVIDERS.get(str(fields.get("litellm_provider")))
            if known is not None:
                yield known[0], name.removeprefix(known[1]), fields
