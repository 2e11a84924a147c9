"""Google's Gemini (https://ai.google.dev/api/generate-content), on the Gemini API and on Vertex AI.

`GEMINI` and `VERTEX` are the adapters. `request` writes the body (with `messages`, `media`, `tools`, `parameters`,
`schema`), `response` and `stream` read answers (with `shapes`, `parts`, `citations`, `usage`, `finish`),
`endpoints` knows the addresses, `models` the abilities of a model's generation, `failures` the meaning of errors.
"""

from __future__ import annotations

from integrations.providers.google.adapter import GEMINI, VERTEX, GoogleAdapter

__all__ = ["GEMINI", "VERTEX", "GoogleAdapter"]
