"""Reads catalog B: it maps providers to models to `cost` in US dollars per 1,000,000 tokens (the form of models.dev's
`api.json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integrations.pricing.entries import CatalogError, Figure, Place, PriceEntry, Refusal, entry
from integrations.providers.openai.compatible import DIALECTS

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
    **{name: row.provider for row in DIALECTS if (name := row.catalogs[1])},
}
_RATES: Mapping[str, str] = {
    "input": "input",
    "output": "output",
    "cache_read": "cache_read",
    "cache_write": "cache_write",
    "input_audio": "input_audio",
    "output_audio": "output_audio",
    "reasoning": "reasoning",
}
# An entry without a list of tiers may have a tier in `cost.context_over_200k`.
_LONG_CONTEXT, _LONG_CONTEXT_TOKENS = "context_over_200k", 200_000


def parse(catalog: Any) -> Iterator[PriceEntry]:
    return (found for found in read(catalog) if isinstance(found, PriceEntry))


def read(catalog: Any) -> Iterator[PriceEntry | Refusal]:
    for provider, model, fields in models(catalog):
        cost = fields.get("cost")
        if cost is None:
            continue
        if not isinstance(cost, dict):
            yield Refusal(provider, model, "cost is no object")
            continue
        found = entry(provider, model, _figures(cost, fields.get("experimental")))
        if found is not None:
            yield found


def _figures(cost: Mapping[str, Any], experimental: Any) -> Iterator[Figure]:
    yield from _rates("", cost)
    tiers = cost.get("tiers")
    for tier in tiers if isinstance(tiers, list) else ():
        bound = tier.get("tier") if isinstance(tier, dict) else None
        size = bound.get("size") if isinstance(bound, dict) and bound.get("type") in (None, "context") else None
        if isinstance(size, int) and size > 0:
            yield from _rates("tiers.", tier, above_tokens=size)
    long_context = cost.get(_LONG_CONTEXT)
    if isinstance(long_context, dict) and not tiers:
        yield from _rates(f"{_LONG_CONTEXT}.", long_context, above_tokens=_LONG_CONTEXT_TOKENS)
    modes = experimental.get("modes") if isinstance(experimental, dict) else None
    for name, mode in modes.items() if isinstance(modes, dict) else ():
        service_tier = _service_tier(mode)
        if service_tier and isinstance(mode.get("cost"), dict):
            yield from _rates(f"modes.{name}.", mode["cost"], service_tier=service_tier)


def _rates(where: str, costs: Mapping[str, Any], *, service_tier: str = "", above_tokens: int = 0) -> Iterator[Figure]:
    for field, name in _RATES.items():
        yield Figure(f"{where}{field}", Place(name, service_tier, above_tokens), costs.get(field))


def _service_tier(mode: Any) -> str:
    provider = mode.get("provider") if isinstance(mode, dict) else None
    body = provider.get("body") if isinstance(provider, dict) else None
    tier = (body.get("service_tier") or body.get("speed")) if isinstance(body, dict) else None
    return tier if isinstance(tier, str) else ""


def models(catalog: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yields (provider, model, fields) of known providers' models, under the gateway's names. Raises CatalogError if
    `catalog` has another form."""
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
