"""The adapters of Anthropic's Messages API (https://docs.anthropic.com/en/api/messages)."""

from integrations.providers.anthropic.adapter import ADAPTER, ON_VERTEX, AnthropicAdapter

__all__ = ["ADAPTER", "ON_VERTEX", "AnthropicAdapter"]
