from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver

from core.openapi.views import document
from core.rights.table import OPERATIONS
from core.roles import Right
from gateway.consumers import UnknownPath
from gateway.routing import GEMINI_ADDRESS, GEMINI_METHODS, RESERVED_PATHS

METHODS = frozenset({"get", "post", "put", "patch", "delete"})
# The document itself, and the pages that show it.
_OWN = frozenset({"/api/schema/", "/api/docs/", "/api/redoc/", "/api/redoc/script.js"})
# The patterns without an end: paths that the gateway does not have, and all that Django serves.
_PREFIXES = frozenset({"^api/gateway/", GEMINI_ADDRESS, ""})
# Django serves these operations in a worker of the gateway, since they ask models: tests/gateway/playground has them.
ASKING_MODELS = frozenset({"tryModel", "compareModels"})
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_GROUP = re.compile(r"\(\?P<(\w+)>[^()]+\)")


class Operation(NamedTuple):
    path: str
    method: str
    described: dict[str, Any]

    @property
    def id(self) -> str:
        name: str = self.described["operationId"]
        return name

    @property
    def right(self) -> Right:
        return OPERATIONS[self.id]


def operations() -> Iterator[Operation]:
    for path, item in document()["paths"].items():
        for method, described in item.items():
            assert method in METHODS
            yield Operation(path, method, described)


@cache
def channels_paths() -> frozenset[str]:
    from config.asgi import router

    routes = router.application_mapping["http"].routes
    # Paths that no client is to call are answered in the form of their protocol.
    patterns = [str(route.pattern) for route in routes if not _is_unknown(route)]
    assert {pattern for pattern in patterns if not pattern.endswith("$")} == _PREFIXES, "A path has to end with $"
    return frozenset(readable(pattern) for pattern in patterns if pattern not in _PREFIXES)


def _is_unknown(route: Any) -> bool:
    return isinstance(route.callback, UnknownPath) and str(route.pattern) not in _PREFIXES


def readable(pattern: str) -> str:
    path = pattern.replace(GEMINI_METHODS, "api/gateway/v1beta/models/")
    path = path.replace(f"{GEMINI_ADDRESS}+", "api/gateway/v1beta/").replace("(?:models/+)+", "models/")
    path = path.replace("/+v1/+(?:v1/+)?", "/v1/").replace(f"(?!{RESERVED_PATHS})", "")
    return "/" + re.sub(r"/\?\$$|[\^$]", "", _GROUP.sub(r"{\1}", path))


def django_routes() -> set[tuple[str, str]]:
    return {(path, method) for path, pattern in django_patterns() for method in _methods(pattern)}


def django_patterns() -> Iterator[tuple[str, URLPattern]]:
    return ((path, pattern) for path, pattern in _below(get_resolver().url_patterns, "/") if path not in _OWN)


def _below(patterns: list[Any], prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        path = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from _below(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern) and path.startswith("/api/"):
            yield _PARAMETER.sub(r"{\1}", re.sub(r"[\^$]|/\?", "", path)), pattern


def _methods(pattern: URLPattern) -> set[str]:
    callback: Any = pattern.callback
    if hasattr(callback, "actions"):
        return set(callback.actions) & METHODS
    if hasattr(callback, "cls"):
        return {method for method in METHODS if hasattr(callback.cls, method)}
    return {"post"}  # The handler is an OTLP view.
