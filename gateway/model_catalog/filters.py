from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal

from gateway.model_catalog.offers import Offer
from gateway.model_list.forms import ABILITY_NAMES
from integrations.capabilities.lookup import Capabilities

Figure = float | int | Decimal | str | None

# The abilities by the names of the API, each with the field of Capabilities.
ABILITIES: Mapping[str, str] = {
    ABILITY_NAMES.get(field.name, field.name): field.name
    for field in fields(Capabilities)
    if field.name not in ("context_window", "max_output_tokens")
}


@dataclass(frozen=True, slots=True)
class CatalogFilter:
    """`search`: words that a model's or provider's name must all contain. `abilities`: names of ABILITIES that the
    model must all have.

    Empty values filter nothing.
    """

    search: str = ""
    provider: str = ""
    abilities: Sequence[str] = ()
    family: str = ""


def _figure(name: str) -> Callable[[Offer], Figure]:
    return lambda offer: getattr(offer.figures, name) if offer.requests else None


# What lists can be sorted by; a minus before the name has the largest first.
SORTS: Mapping[str, Callable[[Offer], Figure]] = {
    "name": lambda offer: offer.family,
    "provider": lambda offer: offer.provider_title.lower(),
    "context_window": lambda offer: offer.context_window,
    "max_output_tokens": lambda offer: offer.max_output_tokens,
    "input_cost_per_1m": lambda offer: offer.price.input if offer.price else None,
    "output_cost_per_1m": lambda offer: offer.price.output if offer.price else None,
    "cache_read_cost_per_1m": lambda offer: offer.price.cache_read if offer.price else None,
    "request_count": lambda offer: offer.requests or None,
    **{
        name: _figure(name)
        for name in (
            "total_cost_usd",
            "error_rate",
            "p50_latency_ms",
            "p95_latency_ms",
            "p50_ttft_ms",
            "tokens_per_second",
        )
    },
}


def matching(offers: Sequence[Offer], given: CatalogFilter) -> list[Offer]:
    words = given.search.lower().split()
    return [offer for offer in offers if _passes(offer, given, words)]


def sorted_by(offers: Sequence[Offer], sort: str) -> list[Offer]:
    """`sort` is a name of SORTS, or empty to keep the order. Models without a value come last."""
    figure = SORTS.get(sort.lstrip("-"))
    if figure is None:
        return list(offers)
    valued = [(value, offer) for offer in offers if (value := figure(offer)) is not None]
    rest = [offer for offer in offers if figure(offer) is None]
    ordered = sorted(valued, key=lambda pair: pair[0], reverse=sort.startswith("-"))
    return [*(offer for _, offer in ordered), *rest]


def _passes(offer: Offer, given: CatalogFilter, words: Sequence[str]) -> bool:
    if given.provider and offer.provider != given.provider:
        return False
    if given.family and offer.family != given.family:
        return False
    if not all(getattr(offer.abilities, ABILITIES[name]) for name in given.abilities):
        return False
    names = (offer.name, offer.title, offer.provider, offer.provider_title, offer.owned_by, offer.id)
    text = " ".join(names).lower()
    return all(word in text for word in words)
