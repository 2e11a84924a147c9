from __future__ import annotations

from typing import TypedDict

from core.wire.shown import shown_as
from gateway.model_catalog.offers import KeysOfModel, Offer
from gateway.model_list.forms import abilities_entry, prices_entry
from gateway.protocol.completion_shapes import ModelPrices


class CatalogModel(TypedDict):
    """A model at one provider. The figures are those of the range: null where nothing was measured."""

    model: str
    family: str
    title: str
    provider: str
    provider_title: str
    id: str
    callable: bool
    operations: list[str]
    context_window: int | None
    max_output_tokens: int | None
    abilities: dict[str, bool]
    prices: ModelPrices | None
    request_count: int
    error_rate: float | None
    total_cost_usd: float
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    p50_ttft_ms: float | None
    tokens_per_second: float | None
    all_api_keys: bool
    api_keys: list[str]
    model_groups: list[str]


def catalog_model(offer: Offer, keys: KeysOfModel) -> CatalogModel:
    return shown_as(
        CatalogModel,
        offer,
        offer.figures,
        model=offer.name,
        callable=offer.is_callable,
        operations=list(offer.operations),
        abilities=abilities_entry(offer.abilities),
        prices=prices_entry(offer.price),
        all_api_keys=keys.all_keys,
        api_keys=list(keys.names),
        model_groups=list(offer.groups),
    )
