"""Each client protocol has its name in the record, and the address at which the gateway serves it in its spans."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from analytics.request_log.record import Operation
from analytics.telemetry.operation_names import operation_names
from gateway import surfaces
from gateway.consumers import SURFACES, SurfaceConsumer
from gateway.routing import http_urlpatterns
from integrations.providers.native import native_adapter
from integrations.registry import providers


def operations() -> Iterator[str]:
    for package in pkgutil.iter_modules(surfaces.__path__, "gateway.surfaces."):
        if package.ispkg and find_spec(f"{package.name}.surface"):
            module = import_module(f"{package.name}.surface")
            yield from {one.operation for one in vars(module).values() if isinstance(getattr(one, "operation", 0), str)}


def served_at(path: str) -> object:
    """Returns the application that the first pattern for a path names."""
    return next(match.func for pattern in http_urlpatterns if (match := pattern.resolve(path.lstrip("/"))))


def test_operations__of_all_surfaces__are_known_to_the_record() -> None:
    found = set(operations())

    assert {"chat", "responses", "messages", "count_tokens", "embeddings", "images"} <= found
    assert found <= {str(operation) for operation in Operation}


def test_operations__of_all_surfaces__are_served_at_the_address_in_their_spans() -> None:
    found = {operation: served_at(operation_names(operation).route) for operation in set(operations())}

    assert all(isinstance(application, SurfaceConsumer) for application in found.values()), found
    assert len({id(application) for application in found.values()}) == len(found)


def test_operations__that_no_chat_completion_can_express__are_ones_of_a_provider() -> None:
    native_only = {surface.surface.operation for surface in SURFACES if surface.surface.native_only}

    assert {"embeddings", "images", "moderations"} <= native_only
    unserved = {one for one in native_only if not any(native_adapter(provider, one) for provider in providers())}
    assert not unserved, "integrations/providers/native.py has no adapter of these operations"
