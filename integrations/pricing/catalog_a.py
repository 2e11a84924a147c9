"""Catalog A: one object, model name → prices in US dollars per token (LiteLLM's `model_prices_and_context_window`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integrations.pricing.entries import CatalogError, PriceEntry, Refusal, entry

# The catalog's provider → ours, and the prefix that its model names carry and ours do not.
_PROVIDERS: Mapping[str, tuple[str, str]] = {
    "openai": ("openai", "openai/"),
    "azure": ("azure_openai", "azure/"),
    "azure_ai": ("azure_openai", "azure_ai/"),
    "anthropic": ("anthropic", "anthropic/"),
    "gemini": ("google", "gemini/"),
    "vertex_ai-language-models": ("google_vertex", "vertex_ai/"),
    "vertex_ai-anthropic_models": ("google_vertex", "vertex_ai/"),
    "vertex_ai-mistral_models": ("google_vertex", "vertex_ai/"),
    "vertex_ai-llama_models": ("google_vertex", "vertex_ai/"),
    "bedrock": ("bedrock", "bedrock/"),
    "bedrock_converse": ("bedrock", "bedrock/"),
    "mistral": ("mistral", "mistral/"),
    "cohere": ("cohere", "cohere/"),
    "cohere_chat": ("cohere", "cohere/"),
    "groq": ("groq", "groq/"),
    "deepseek": ("deepseek", "deepseek/"),
    "xai": ("xai", "xai/"),
    "openrouter": ("openrouter", "openrouter/"),
    "together_ai": ("together", "together_ai/"),
    "fireworks_ai": ("fireworks", "fireworks_ai/"),
    "perplexity": ("perplexity", "perplexity/"),
    "cerebras": ("cerebras", "cerebras/"),
    "zai": ("zai", "zai/"),
    "snowflake": ("snowflake", "snowflake/"),
    "moonshot": ("moonshot", "moonshot/"),
    "dashscope": ("dashscope", "dashscope/"),
    "minimax": ("minimax", "minimax/"),
    "volcengine": ("volcengine", "volcengine/"),
    "bigmodel": ("bigmodel", "bigmodel/"),
    "xiaomi_mimo": ("xiaomi_mimo", "xiaomi_mimo/"),
    "inception": ("inception", "inception/"),
    "morph": ("morph", "morph/"),
    "v0": ("v0", "v0/"),
    "meta_llama": ("meta_llama", "meta_llama/"),
    "sambanova": ("sambanova", "sambanova/"),
    "databricks": ("databricks", "databricks/"),
    "deepinfra": ("deepinfra", "deepinfra/"),
    "novita": ("novita", "novita/"),
    "nebius": ("nebius", "nebius/"),
    "hyperbolic": ("hyperbolic", "hyperbolic/"),
    "baseten": ("baseten", "baseten/"),
    "friendliai": ("friendliai", "friendliai/"),
    "featherless_ai": ("featherless_ai", "featherless_ai/"),
    "nscale": ("nscale", "nscale/"),
    "gradient_ai": ("gradient_ai", "gradient_ai/"),
    "cloudflare": ("cloudflare", "cloudflare/"),
    "ovhcloud": ("ovhcloud", "ovhcloud/"),
    "scaleway": ("scaleway", "scaleway/"),
    "wandb": ("wandb", "wandb/"),
    "gmi": ("gmi", "gmi/"),
    "vercel_ai_gateway": ("vercel_ai_gateway", "vercel_ai_gateway/"),
    "amazon_nova": ("amazon_nova", "amazon-nova/"),
}
_MODES = frozenset({"chat", "completion", "responses"})
_COSTS = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_PER_MILLION = 6


def parse(catalog: Any) -> Iterator[PriceEntry]:
    """The prices of `models` that make sense. Raises CatalogError."""
    return (found for found in read(catalog) if isinstance(found, PriceEntry))


def read(catalog: Any) -> Iterator[PriceEntry | Refusal]:
    """The prices of `models`, and which of them make no sense. Raises CatalogError."""
    for provider, model, fields in models(catalog):
        found = entry(provider, model, fields, _COSTS, scale=_PER_MILLION)
        if found is not None:
            yield found


def models(catalog: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(provider, model, fields) of the chat models of providers we know, in our names.

    Raises CatalogError when `catalog` is not one.
    """
    if not isinstance(catalog, dict) or not catalog:
        raise CatalogError("catalog_a is not an object of models")
    for name, fields in catalog.items():
        if isinstance(fields, dict) and name != "sample_spec" and fields.get("mode") in _MODES:
            known = _PROVIDERS.get(str(fields.get("litellm_provider")))
            if known is not None:
                yield known[0], name.removeprefix(known[1]), fields
