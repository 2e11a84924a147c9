"""OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat) and the providers that speak them.

`dialect` describes a look-alike's differences as data; `compatible` holds one row per look-alike.
"""

from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter

__all__ = ["ADAPTER", "OpenAIAdapter"]
