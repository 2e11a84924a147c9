"""The paths that bypass Django: the gateway and the health check."""

from __future__ import annotations

from django.urls import re_path

from gateway.consumers import chat_completions, health, models, unknown_path

http_urlpatterns = [
    re_path(r"^api/gateway/v1/chat/completions/?$", chat_completions),
    re_path(r"^api/gateway/v1/models/?$", models),
    re_path(r"^api/gateway/", unknown_path),
    re_path(r"^healthz$", health),
]
