"""Catalog B: provider → models → `cost` in US dollars per 1,000,000 tokens (the form of models.dev's `api.json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integrations.pricing.entries import CatalogError, PriceEntry, Refusal, entry

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
    "moonshotai": "moonshot",
    "alibaba": "dashscope",
    "minimax": "minimax",
    "zhipuai": "bigmodel",
    "stepfun": "stepfun",
    "upstage": "upstage",
    "xiaomi": "xiaomi_mimo",
    "inception": "inception",
    "morph": "morph",
    "v0": "v0",
    "llama": "meta_llama",
    "nova": "amazon_nova",
    "nvidia": "nvidia",
    "databricks": "databricks",
    "github-models": "github",
    "deepinfra": "deepinfra",
    "novita-ai": "novita",
    "nebius": "nebius",
    "baseten": "baseten",
    "friendli": "friendliai",
    "digitalocean": "gradient_ai",
    "cloudflare-workers-ai": "cloudflare",
    "ovhcloud": "ovhcloud",
    "scaleway": "scaleway",
    "wandb": "wandb",
    "siliconflow": "siliconflow",
    "gmicloud": "gmi",
    "chutes": "chutes",
    "io-net": "io_net",
    "vercel": "vercel_ai_gateway",
    "requesty": "requesty",
    "helicone": "helicone",
    "poe": "poe",
    "venice": "venice",
}
_COSTS = ("input", "output", "cache_read", "cache_write")


def parse(catalog: Any) -> Iterator[PriceEntry]:
    """The prices of `models` that make sense. Raises CatalogError."""
    return (found for found in read(catalog) if isinstance(found, PriceEntry))


def read(catalog: Any) -> Iterator[PriceEntry | Refusal]:
    """The prices of `models`, and which of them make no sense. Raises CatalogError."""
    for provider, model, fields in models(catalog):
        cost = fields.get("cost")
        if cost is None:
            continue
        if not isinstance(cost, dict):
            yield Refusal(provider, model, "cost is no object")
            continue
        found = entry(provider, model, cost, _COSTS)
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
