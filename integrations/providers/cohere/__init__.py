"""Cohere's chat, version 2 (https://docs.cohere.com/reference/chat).

`request` and `messages` write what goes out, `response` and `stream` read answers (with `finish`,
`usage`, `citations`).
"""

from __future__ import annotations

from integrations.providers.cohere.adapter import ADAPTER, CohereAdapter

__all__ = ["ADAPTER", "CohereAdapter"]
