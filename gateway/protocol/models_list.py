"""The answer to GET /models: the supported model prefixes in the shape of OpenAI's list."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from integrations.registry import supported_prefixes


def models_list(providers: Container[str]) -> dict[str, Any]:
    """Returns OpenAI's list with {id, object, created, owned_by, enabled} in `data`; `enabled` tells whether one of
    `providers` serves the prefix."""
    return {
        "object": "list",
        "data": [
            {
                "id": prefix.prefix,
                "object": "model",
                "created": 0,
                "owned_by": prefix.owned_by,
                "enabled": any(provider in providers for provider in prefix.providers),
            }
            for prefix in supported_prefixes()
        ],
    }
