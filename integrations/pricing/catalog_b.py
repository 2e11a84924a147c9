"""Catalog B: provider → models → `cost` in US dollars per 1,000,000 tokens (the form of models.dev's `api.json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integrations.pricing.entries import CatalogError, PriceEntry, amount, entry

_PROVIDERS: Mapping[str, str] = {
    "openai": "openai",
    "azure": "azure_openai",
    "anthropic": "anthropic",
    "google": "google",
    "google-vertex": "google_vertex",
    "google-vertex-anthropic": "google_vertex",
    "amazon-bedrock": "bedrock",
    "mistral": "mistral",
    "cohere": "cohere",
    "groq": "groq",
    "deepseek": "deepseek",
    "xai": "xai",
    "openrouter": "openrouter",
    "togetherai": "together",
    "fireworks-ai": "fireworks",
    "perplexity": "perplexity",
    "cerebras": "cerebras",
    "huggingface": "huggingface",
    "zai": "zai",
    "snowflake-cortex": "snowflake",
}


def parse(catalog: Any) -> Iterator[PriceEntry]:
    """The prices of `models`. Raises CatalogError."""
    for provider, model, fields in models(catalog):
        found = _entry(provider, model, fields.get("cost"))
        if found is not None:
            yield found


def models(catalog: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(provider, model, fields) of the models of providers we know, in our names.

    Raises CatalogError when `catalog` is not one.
    """
    if not isinstance(catalog, dict) or not catalog:
        raise CatalogError("catalog_b is not an object of providers")
    for provider_id, fields in catalog.items():
        provider = _PROVIDERS.get(provider_id)
        listed = fields.get("models") if isinstance(fields, dict) else None
        if provider is None or not isinstance(listed, dict):
            continue
        for model, details in listed.items():
            if isinstance(details, dict):
                yield provider, model, details


def _entry(provider: str, model: str, cost: Any) -> PriceEntry | None:
    if not isinstance(cost, dict):
        return None
    return entry(
        provider,
        model,
        (
            amount(cost.get("input")),
            amount(cost.get("output")),
            amount(cost.get("cache_read")),
            amount(cost.get("cache_write")),
        ),
    )
