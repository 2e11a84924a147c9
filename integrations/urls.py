"""The paths of the integrations app below `/api/llm/`."""

from __future__ import annotations

from django.urls import include, path

from integrations.views import IntegrationsView, IntegrationTestView, IntegrationView

urlpatterns = [
    path("integrations", IntegrationsView.as_view(), name="integrations"),
    path("integrations/<str:name>", IntegrationView.as_view(), name="integration"),
    path("integrations/<str:name>/test", IntegrationTestView.as_view(), name="integration-test"),
    path("", include("integrations.pricing.urls")),
]
