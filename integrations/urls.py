from __future__ import annotations

from core.api.routers import ProjectRouter
from integrations.pricing.viewsets import ModelPriceViewSet, PriceViewSet
from integrations.viewsets import IntegrationViewSet

router = ProjectRouter()
router.register("integrations", IntegrationViewSet, "integration")
# Before the prices of a provider, which could be called `sync`.
router.register("pricing", PriceViewSet, "price")
router.register("pricing/<str:provider>", ModelPriceViewSet, "model-price")

urlpatterns = router.urls
