"""Google's Gemini (https://ai.google.dev/api/generate-content), on the Gemini API and on Vertex AI.

`GEMINI` and `VERTEX` are the adapters. `request` writes the body (with `contents`, `media`, `tools`, `generation`,
`schemas`), `response` and `stream` read answers (with `shapes`, `pieces`, `citations`, `counts`), `places` knows the
addresses, `models` what a model's generation can do, `errors` what failures mean.
"""

from __future__ import annotations

from integrations.providers.google.adapter import GEMINI, VERTEX, GoogleAdapter

__all__ = ["GEMINI", "VERTEX", "GoogleAdapter"]
