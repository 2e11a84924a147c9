"""The paths of prices below `/api/llm/`. A path parameter takes slashes, since names of models contain them."""

from __future__ import annotations

from django.urls import path

from integrations.pricing.views import (
    PriceHistoryView,
    PricesView,
    PriceSyncView,
    PriceView,
    ProviderPricesView,
    SyncHistoryView,
)

urlpatterns = [
    path("pricing", PricesView.as_view(), name="prices"),
    path("pricing/sync", PriceSyncView.as_view(), name="price-sync"),
    path("pricing/sync-history", SyncHistoryView.as_view(), name="price-sync-history"),
    path("pricing/<str:provider>", ProviderPricesView.as_view(), name="provider-prices"),
    path("pricing/<str:provider>/<slashed:model>/history", PriceHistoryView.as_view(), name="price-history"),
    path("pricing/<str:provider>/<slashed:model>", PriceView.as_view(), name="price"),
]
