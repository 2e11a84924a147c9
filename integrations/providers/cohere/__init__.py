"""Cohere's chat, version 2 (https://docs.cohere.com/reference/chat). `request` and `messages` write the request,
`response` and `stream` read answers (with `finish`, `usage`, `citations`)."""

from __future__ import annotations

from integrations.providers.cohere.adapter import ADAPTER, CohereAdapter

__all__ = ["ADAPTER", "CohereAdapter"]
