"""GET /models: the supported model prefixes in OpenAI's list shape (design, section 5)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from integrations.registry import supported_prefixes


def models_list(providers: Container[str]) -> dict[str, Any]:
    """`{"object": "list", "data": [{id, object, created, owned_by, enabled}]}`; `enabled` by one of `providers`."""
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
