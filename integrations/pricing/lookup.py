"""Which entry of the price table a model's tokens are priced by. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from integrations.pricing.cost import Price

PriceTable = Mapping[tuple[str, str], Price]

# `-2024-08-06`, `-20240806`, `-0125`, `@20241022`, `-latest`; `:free`-like tiers are models of their own and stay.
_VERSION = re.compile(r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest|default))$")
# A provider that resells another's models at the same price, looked up when its own list does not know the model.
_PRICED_LIKE = {"azure_openai": "openai", "google_vertex": "google"}
# A provider whose models all cost the same is listed once, under this name.
ANY_MODEL = "*"
# Providers whose model ids name the vendor first.
_VENDOR_PREFIXED = ("openai/", "azure/", "meta-llama/")


def find_price(table: PriceTable, provider: str, model: str) -> Price | None:
    """The price of `model` at `provider`: its exact name, else the name without its version suffix; None is unknown."""
    price = table.get((provider, model))
    if price is not None:
        return price
    any_model = table.get((provider, ANY_MODEL))
    if any_model is not None:
        return any_model
    for listed_provider in filter(None, (provider, _PRICED_LIKE.get(provider))):
        for name in spellings(model):
            price = table.get((listed_provider, name))
            if price is not None:
                return price
    return None


def spellings(model: str) -> list[str]:
    """The model's name as lists may write it, the most exact first."""
    lower = model.lower()
    names = [model, lower]
    base = _VERSION.sub("", lower)
    names += [base, f"{base}-latest"]
    # Azure writes gpt-35-turbo where OpenAI writes gpt-3.5-turbo.
    names += [name.replace("gpt-35-", "gpt-3.5-") for name in (lower, base) if name.startswith("gpt-35-")]
    for prefix in _VENDOR_PREFIXED:
        if lower.startswith(prefix):
            names += [lower.removeprefix(prefix), base.removeprefix(prefix)]
    return list(dict.fromkeys(names))
