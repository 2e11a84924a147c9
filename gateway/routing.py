"""The paths that bypass Django: the gateway, the prompts of applications, and the health checks."""

from __future__ import annotations

from typing import Any, cast

from django.urls import re_path
from django.urls.resolvers import URLPattern

from gateway.consumers import (
    chat_completions,
    completions,
    count_tokens,
    embeddings,
    health,
    images,
    messages,
    models,
    moderations,
    rerank,
    responses,
    speech,
    stored_response,
    transcriptions,
    unknown_path,
)
from gateway.http.readyz import ready
from gateway.prompt_fetch.endpoint import prompt, rendered_prompt
from prompts.services import RESERVED_NAMES

RESERVED_PATHS = f"(?:{'|'.join(RESERVED_NAMES)})(?:/|$)"
"""A pattern of paths below the prompts that are not names of prompts."""


def route(pattern: str, application: Any) -> URLPattern:
    """A pattern for Channels' URLRouter, which takes any ASGI application where Django's types know views only."""
    return cast(URLPattern, re_path(pattern, application))


def gateway_route(path: str, application: Any) -> URLPattern:
    """A path below the address of the gateway. Clients double its `v1`, as Anthropic's SDKs do, which add one to the
    base address that OpenAI's SDKs need, and they put slashes before the path and behind it."""
    return route(rf"^api/gateway/+v1/+(?:v1/+)?{path}/?$", application)


# The paths with the most requests as clients write them, so that they need no matching of patterns.
_OFTEN = {"chat/completions": chat_completions, "responses": responses, "messages": messages, "embeddings": embeddings}
DIRECT = {
    f"/api/gateway/{version}/{path}{end}": application
    for path, application in _OFTEN.items()
    for version in ("v1", "v1/v1")
    for end in ("", "/")
}

http_urlpatterns = [
    gateway_route("chat/completions", chat_completions),
    gateway_route("responses", responses),
    gateway_route("responses/(?P<response_id>[^/]+)", stored_response),
    gateway_route("messages", messages),
    gateway_route("messages/count_tokens", count_tokens),
    gateway_route("completions", completions),
    gateway_route("embeddings", embeddings),
    gateway_route("moderations", moderations),
    gateway_route("rerank", rerank),
    gateway_route("images/generations", images),
    gateway_route("audio/speech", speech),
    gateway_route("audio/transcriptions", transcriptions),
    gateway_route("models", models),
    # Names of models have slashes in them.
    gateway_route("models/(?P<model>.+?)", models),
    route(r"^api/gateway/", unknown_path),
    # Django serves the management of prompts, whose paths come first (`prompts.urls`).
    route(rf"^api/llm/prompts/(?!{RESERVED_PATHS})(?P<name>.+)/render$", rendered_prompt),
    route(rf"^api/llm/prompts/(?!{RESERVED_PATHS})(?P<name>.+)$", prompt),
    route(r"^api/llm/prompts/?$", prompt),
    route(r"^healthz$", health),
    route(r"^readyz$", ready),
]
