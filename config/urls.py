from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from analytics.urls import otlp_urlpatterns, quality_urlpatterns, telemetry_urlpatterns
from core.views import health, home

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home, name="home"),
    path("healthz", health, name="health"),
    path("admin/", admin.site.urls),
    path("api/", include("core.openapi.urls")),
    path("api/llm/", include("core.urls")),
    path("api/llm/", include("integrations.urls")),
    path("api/llm/", include("analytics.urls")),
    path("api/llm/", include(quality_urlpatterns)),
    path("api/", include(telemetry_urlpatterns)),
    path("api/otlp/", include(otlp_urlpatterns)),
    path("api/llm/", include("prompts.urls")),
    path("api/llm/", include("rollouts.urls")),
    path("api/llm/", include("gateway.urls")),
    path("api/agent/", include("agent.urls")),
]

handler400 = "core.http.failures.bad_request"
handler403 = "core.http.failures.permission_denied"
handler404 = "core.http.failures.page_not_found"
handler500 = "core.http.failures.server_error"
