"""Mistral's chat completions (https://docs.mistral.ai/api/): close to OpenAI's, but unknown fields are refused.
`ADAPTER` is the adapter; `request` writes the body, `messages` the messages in it, `response` and `stream` read answers
(with `thinking`, `references`)."""

from __future__ import annotations

from integrations.providers.mistral.adapter import ADAPTER, MistralAdapter

__all__ = ["ADAPTER", "MistralAdapter"]
