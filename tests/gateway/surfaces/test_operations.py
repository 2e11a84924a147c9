"""Each client protocol has its name in the record, and its providers."""

from __future__ import annotations

from analytics.request_log.record import Operation
from gateway.batches.consumers import PATHS
from gateway.consumers import SURFACES
from gateway.surfaces.gemini.surface import CountContentSurface, GeminiSurface
from integrations.providers.native import native_adapter
from integrations.registry import providers


def test_operations__of_all_surfaces__are_known_to_the_record() -> None:
    found = {surface.surface.operation for surface in SURFACES}
    found |= {GeminiSurface.operation, CountContentSurface.operation}
    found |= {path.consumer.operation for path in PATHS}

    assert sorted(found) == sorted(Operation)


def test_operations__that_no_chat_completion_can_express__are_ones_of_a_provider() -> None:
    native_only = {surface.surface.operation for surface in SURFACES if surface.surface.native_only}

    assert {"embeddings", "images", "moderations"} <= native_only
    unserved = {one for one in native_only if not any(native_adapter(provider, one) for provider in providers())}
    assert not unserved, "integrations/providers/native.py has no adapter of these operations"
