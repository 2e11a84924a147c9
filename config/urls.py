"""Every path that Django serves; the gateway's own are in `config/asgi.py`."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/llm/", include("core.urls")),
    path("api/llm/", include("integrations.urls")),
    path("api/llm/", include("analytics.urls")),
]
