"""Filters and sorts the models of the catalog, for the API and the page alike."""

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
    """`search` has words, each of which a model's or a provider's name has to contain; `abilities` has names of
    ABILITIES, all of which the model has to have. Empty values are no filter."""

    search: str = ""
    provider: str = ""
    abilities: Sequence[str] = ()
    family: str = ""


def tokens_per_second(offer: Offer) -> float | None:
    """Returns the output tokens in a second of the whole time that requests took; None without any."""
    row = offer.figures
    return row.completion_tokens * 1000 / row.latency_sum_ms if row and row.latency_sum_ms else None


def percentile(offer: Offer, place: int, *, first_token: bool = False) -> float | None:
    """Returns the 50th, 95th or 99th percentile (place 0, 1, 2) in ms of the whole latency or of the time to the first
    token; None without samples."""
    row = offer.figures
    if row is None or not (row.streamed if first_token else row.requests - row.batched):
        return None
    return (row.ttft_q if first_token else row.latency_q)[place]


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
    "total_cost_usd": lambda offer: offer.figures.cost_usd if offer.figures else None,
    "error_rate": lambda offer: offer.figures.errors / offer.requests if offer.figures and offer.requests else None,
    "p50_latency_ms": lambda offer: percentile(offer, 0),
    "p95_latency_ms": lambda offer: percentile(offer, 1),
    "p50_ttft_ms": lambda offer: percentile(offer, 0, first_token=True),
    "tokens_per_second": tokens_per_second,
}


def matching(offers: Sequence[Offer], given: CatalogFilter) -> list[Offer]:
    """Returns the models that pass the filters, in their order."""
    words = given.search.lower().split()
    return [offer for offer in offers if _passes(offer, given, words)]


def sorted_by(offers: Sequence[Offer], sort: str) -> list[Offer]:
    """Returns the models by a name of SORTS, those without a value last; in their order for an empty one."""
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
