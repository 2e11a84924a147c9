"""Anthropic's Messages API (https://docs.anthropic.com/en/api/messages)."""

from integrations.providers.anthropic.adapter import ADAPTER, AnthropicAdapter

__all__ = ["ADAPTER", "AnthropicAdapter"]
