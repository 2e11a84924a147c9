"""The lookup of the price entry that applies to a model. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from integrations.pricing.cost import Price

Key = tuple[str, str]
PriceTable = Mapping[Key, Price]

# `-2024-08-06`, `-20240806`, `-0125`, `@20241022`, `-latest`; `:free`-like tiers are models of their own and stay.
_VERSION = re.compile(r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest|default))$")
# A provider that resells another's models at the same price, looked up when its own list does not know the model.
_PRICED_LIKE = {"azure_openai": "openai", "azure_anthropic": "anthropic", "google_vertex": "google"}
# A provider whose models all cost the same is listed once, under this name.
ANY_MODEL = "*"
_FINE_TUNED = "ft:"
# Providers whose model ids name the vendor first.
_VENDOR_PREFIXED = ("openai/", "azure/", "meta-llama/")


def find_price(table: PriceTable, provider: str, model: str) -> Price | None:
    """The price of `model` at `provider`: its exact name, else the name without its version suffix; None is unknown."""
    entry = find_entry(table, provider, model)
    return None if entry is None else table[entry]


def find_entry(table: Container[Key], provider: str, model: str) -> Key | None:
    """The provider and name under which the table has the price of `model`."""
    for name in (model, ANY_MODEL):
        if (provider, name) in table:
            return provider, name
    for listed_provider in filter(None, (provider, _PRICED_LIKE.get(provider))):
        for name in spellings(model):
            if (listed_provider, name) in table:
                return listed_provider, name
    return None


def spellings(model: str) -> list[str]:
    """The model's name as lists may write it, the most exact first."""
    lower = model.lower()
    names = [model, lower]
    base = _VERSION.sub("", lower)
    names += [base, f"{base}-latest"]
    # Azure writes gpt-35-turbo where OpenAI writes gpt-3.5-turbo.
    names += [name.replace("gpt-35-", "gpt-3.5-") for name in (lower, base) if name.startswith("gpt-35-")]
    if lower.startswith(_FINE_TUNED):
        # ft:gpt-4o-mini-2024-07-18:owner:name:id is listed by what it was made of.
        names.append(":".join(lower.split(":")[:2]))
    for prefix in _VENDOR_PREFIXED:
        if lower.startswith(prefix):
            names += [lower.removeprefix(prefix), base.removeprefix(prefix)]
    return list(dict.fromkeys(names))
