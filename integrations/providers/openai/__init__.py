"""OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat) and the providers that speak them.

`ADAPTER` is OpenAI's own adapter, `azure` Azure's. `dialect` describes the differences of a look-alike as data,
`compatible` holds one row for each look-alike. `request` writes the body (with `messages`, `parameters`,
`cache_markers`), `response` and `stream` read answers (with `shapes`, `tools`, `finish`).
"""

from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter

__all__ = ["ADAPTER", "OpenAIAdapter"]
