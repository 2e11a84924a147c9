"""Cohere's chat, version 2 (https://docs.cohere.com/reference/chat)."""

from __future__ import annotations

from integrations.providers.cohere.adapter import ADAPTER, CohereAdapter

__all__ = ["ADAPTER", "CohereAdapter"]
