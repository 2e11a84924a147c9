from __future__ import annotations

import re
from collections.abc import Container, Mapping

from integrations.pricing.cost import Price

Key = tuple[str, str]
PriceTable = Mapping[Key, Price]

# The suffixes of versions are `-2024-08-06`, `-20240806`, `-0125`, `@20241022` and `-latest`; a tier such as `:free` is
# a model of its own and stays.
_VERSION = re.compile(r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest|default))$")
# Each provider in this mapping resells another provider's models at the same price, which applies when its own list
# lacks the model.
_PRICED_LIKE = {"azure_openai": "openai", "azure_anthropic": "anthropic", "google_vertex": "google"}
# A provider whose models all cost the same is listed once, under the model name `*`.
ANY_MODEL = "*"
_FINE_TUNED = "ft:"
# A model id may begin with the name of a vendor, which is then removed.
_VENDOR_PREFIXED = ("openai/", "azure/", "meta-llama/")


def find_price(table: PriceTable, provider: str, model: str) -> Price | None:
    entry = find_entry(table, provider, model)
    return None if entry is None else table[entry]


def find_entry(table: Container[Key], provider: str, model: str) -> Key | None:
    for name in (model, ANY_MODEL):
        if (provider, name) in table:
            return provider, name
    for listed_provider in filter(None, (provider, _PRICED_LIKE.get(provider))):
        for name in spellings(model):
            if (listed_provider, name) in table:
                return listed_provider, name
    return None


def spellings(model: str) -> list[str]:
    lower = model.lower()
    names = [model, lower]
    base = _VERSION.sub("", lower)
    names += [base, f"{base}-latest"]
    # Azure writes gpt-35-turbo where OpenAI writes gpt-3.5-turbo.
    names += [name.replace("gpt-35-", "gpt-3.5-") for name in (lower, base) if name.startswith("gpt-35-")]
    if lower.startswith(_FINE_TUNED):
        # A fine-tuned model, such as ft:gpt-4o-mini-2024-07-18:owner:name:id, is listed under the model that it was
        # made from.
        names.append(":".join(lower.split(":")[:2]))
    for prefix in _VENDOR_PREFIXED:
        if lower.startswith(prefix):
            names += [lower.removeprefix(prefix), base.removeprefix(prefix)]
    return list(dict.fromkeys(names))
