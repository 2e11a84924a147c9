"""Mistral's chat completions (https://docs.mistral.ai/api/): close to OpenAI's, but unknown fields are refused."""

from __future__ import annotations

from integrations.providers.mistral.adapter import ADAPTER, MistralAdapter

__all__ = ["ADAPTER", "MistralAdapter"]
