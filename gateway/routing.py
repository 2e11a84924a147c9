from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, cast

from django.urls import re_path
from django.urls.resolvers import URLPattern

from gateway.batches.consumers import PATHS
from gateway.consumers import (
    GEMINI_CONSUMER,
    SURFACES,
    BaseAddress,
    Health,
    Models,
    StoredResponse,
    SurfaceConsumer,
    UnknownPath,
)
from gateway.http.readyz import Ready
from gateway.prompt_fetch.endpoint import Prompt, RenderedPrompt
from gateway.surfaces.gemini.address import METHODS, MODEL_PREFIX
from gateway.surfaces.gemini.surface import SURFACE as GEMINI
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from prompts.services import RESERVED_NAMES

RESERVED_PATHS = f"(?:{'|'.join(RESERVED_NAMES)})(?:/|$)"
"""A pattern of paths below the prompts that are not names of prompts."""


def route(pattern: str, application: Any) -> URLPattern:
    """Channels' URLRouter accepts any ASGI application, but Django's types allow only views."""
    return cast(URLPattern, re_path(pattern, application))


def gateway_route(path: str, application: Any) -> URLPattern:
    """A path below the gateway's address.

    Anthropic's SDKs add a second `v1` to the base address that OpenAI's SDKs need, and clients add slashes before and
    after the path. All of these match.
    """
    return route(rf"^api/gateway/+v1/+(?:v1/+)?{path}/?$", application)


GEMINI_ADDRESS = r"^api/gateway/+(?:v1/+)?(?:v1beta1?|v1alpha)/"
"""A pattern of the addresses below which everything is Gemini's: its clients write its version."""
GEMINI_METHODS = rf"^api/gateway/+(?:v1/+)?(?:v1beta1?|v1alpha|v1)/+(?:publishers/+[^/]+/+)?{MODEL_PREFIX}"
"""A pattern of what stands before the model whose method is called. The version `v1` is shared with other protocols,
and clients of Vertex AI write the model's publisher."""


DIRECT_PATTERNS = (
    (
        re.compile(rb"/api/gateway/v1(?:beta|alpha)/models/[!-~]+:(?:%b)(?:\?[!-~]*)?" % "|".join(METHODS).encode()),
        GEMINI_CONSUMER,
    ),
)
"""The URLs of Gemini's methods as clients write them, for a server that hands requests over by itself."""


def gemini_methods() -> Iterator[URLPattern]:
    for method in METHODS:
        yield route(rf"{GEMINI_METHODS}(?P<model>.+?):{method}/?$", GEMINI_CONSUMER)


def direct_consumers(routes: Sequence[URLPattern]) -> dict[bytes, SurfaceConsumer]:
    """Returns the consumers of client protocols by raw path, for a server that dispatches requests by itself.

    Each path is resolved in `routes`, so that it leads where the router leads.
    """
    found = {}
    for surface in SURFACES:
        for version, end in product(("v1", "v1/v1"), ("", "/")):
            path = f"api/gateway/{version}/{surface.path}{end}"
            consumer = next(match.func for route in routes if (match := route.resolve(path)))
            found[f"/{path}".encode()] = cast(SurfaceConsumer, consumer)
    return found


_models, _prompt = Models.as_asgi(), Prompt.as_asgi()
_gemini_models = Models("gemini")
http_urlpatterns = [
    *(gateway_route(surface.path, surface) for surface in SURFACES),
    gateway_route("responses/(?P<response_id>[^/]+)", StoredResponse.as_asgi()),
    *(gateway_route(path.pattern, path.consumer) for path in PATHS),
    *gemini_methods(),
    route(rf"{GEMINI_ADDRESS}+models/?$", _gemini_models),
    route(rf"{GEMINI_ADDRESS}+(?:models/+)+(?P<model>.+?)/?$", _gemini_models),
    route(GEMINI_ADDRESS, UnknownPath(GEMINI)),
    gateway_route("models", _models),
    # Names of models have slashes in them.
    gateway_route("models/(?P<model>.+?)", _models),
    route(r"^api/gateway/?$", BaseAddress.as_asgi()),
    gateway_route("messages/.+", UnknownPath(MESSAGES)),
    route(r"^api/gateway/", UnknownPath.as_asgi()),
    # Django serves the management of prompts, whose paths come first (`prompts.urls`).
    route(rf"^api/llm/prompts/(?!{RESERVED_PATHS})(?P<name>.+)/render$", RenderedPrompt.as_asgi()),
    route(rf"^api/llm/prompts/(?!{RESERVED_PATHS})(?P<name>.+)$", _prompt),
    route(r"^api/llm/prompts/?$", _prompt),
    route(r"^healthz$", Health.as_asgi()),
    route(r"^readyz$", Ready.as_asgi()),
]
