"""The supported prefixes of model names, as `GET /models` and the agent show them."""

from __future__ import annotations

from collections.abc import Container

from gateway.protocol.completion_shapes import ModelPrefix
from integrations.registry import supported_prefixes


def model_prefixes(enabled: Container[str]) -> list[ModelPrefix]:
    """Returns each prefix with what it stands for: the vendor of the models and the providers that serve them.
    `enabled` are the project's providers."""
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
