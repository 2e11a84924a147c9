from __future__ import annotations

from collections.abc import Container

from gateway.protocol.completion_shapes import ModelPrefix
from integrations.registry import supported_prefixes


def model_prefixes(enabled: Container[str]) -> list[ModelPrefix]:
    return [
        {
            "id": prefix.prefix,
            "object": "model.prefix",
            "owned_by": prefix.owned_by,
            "providers": list(prefix.providers),
            "enabled": any(provider in enabled for provider in prefix.providers),
        }
        for prefix in supported_prefixes()
    ]
