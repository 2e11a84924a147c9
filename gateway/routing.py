"""The paths that bypass Django: the gateway and the health checks."""

from __future__ import annotations

from typing import Any, cast

from django.urls import re_path
from django.urls.resolvers import URLPattern

from gateway.consumers import (
    chat_completions,
    count_tokens,
    health,
    messages,
    models,
    responses,
    stored_response,
    unknown_path,
)
from gateway.readyz import ready


def route(pattern: str, application: Any) -> URLPattern:
    """A pattern for Channels' URLRouter, which takes any ASGI application where Django's types know views only."""
    return cast(URLPattern, re_path(pattern, application))


# The paths of chat completions as clients write them, so that they need no matching of patterns.
COMPLETIONS = frozenset({"/api/gateway/v1/chat/completions", "/api/gateway/v1/chat/completions/"})

http_urlpatterns = [
    route(r"^api/gateway/v1/chat/completions/?$", chat_completions),
    route(r"^api/gateway/v1/responses/?$", responses),
    route(r"^api/gateway/v1/responses/[^/]+/?$", stored_response),
    # Anthropic's SDKs add /v1 to the base address, which OpenAI's SDKs expect to have it.
    route(r"^api/gateway/v1/(?:v1/)?messages/?$", messages),
    route(r"^api/gateway/v1/(?:v1/)?messages/count_tokens/?$", count_tokens),
    route(r"^api/gateway/v1/models/?$", models),
    route(r"^api/gateway/", unknown_path),
    route(r"^healthz$", health),
    route(r"^readyz$", ready),
]
