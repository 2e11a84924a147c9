from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec

from integrations.pricing.cost import Cost, Price, PriceOf, known_cost, price_of_part, summed_cost
from integrations.pricing.terms import Terms
from integrations.providers.usage import Usage

BATCH = "batch"
"""The service tier of requests in batches, by which answers and price lists name it."""

# Half of the usual price: https://platform.openai.com/docs/guides/batch,
# https://platform.claude.com/docs/en/build-with-claude/batch-processing, https://console.groq.com/docs/batch,
# https://learn.microsoft.com/azure/ai-foundry/openai/how-to/batch
SHARE = Decimal("0.5")


def batch_cost(usage: Usage, price: Price | None, price_of: PriceOf | None = None) -> Cost | None:
    if usage.parts:
        return summed_cost(batch_cost(part, price_of_part(part, price, price_of)) for part in usage.parts)
    if price is None:
        return known_cost(usage, None)
    if has_batch_price(price.terms):
        return known_cost(msgspec.structs.replace(usage, service_tier=BATCH), price)
    return known_cost(msgspec.structs.replace(usage, service_tier=""), halved(price))


def has_batch_price(terms: Terms) -> bool:
    return any(tier.get("service_tier") == BATCH for tier in terms.get("tiers", ()))


def halved(price: Price) -> Price:
    """Halves each rate. Fees stay: no vendor discounts a search or a request."""
    return replace(
        price,
        input=price.input * SHARE,
        output=price.output * SHARE,
        cache_read=None if price.cache_read is None else price.cache_read * SHARE,
        cache_write=None if price.cache_write is None else price.cache_write * SHARE,
        terms=_halved_terms(price.terms),
    )


def _halved_terms(terms: Terms) -> Terms:
    made: dict[str, Any] = dict(terms)
    if "rates" in terms:
        made["rates"] = _halved_rates(terms["rates"])
    if "tiers" in terms:
        made["tiers"] = [{**tier, "rates": _halved_rates(tier["rates"])} for tier in terms["tiers"]]
    return made


def _halved_rates(rates: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{Decimal(cost) * SHARE:f}" for name, cost in rates.items()}
