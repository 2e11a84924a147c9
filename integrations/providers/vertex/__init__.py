"""Vertex AI: Gemini in Google's dialect, and the models of other publishers in theirs, at one place, with one secret.

`ADAPTER` is the adapter; `publishers` tells whose a model is, `partners` which dialect that is and where it listens. A
publisher of one more dialect is one row of `PARTNERS`.
"""

from __future__ import annotations

from integrations.providers.vertex.adapter import ADAPTER, VertexAdapter

__all__ = ["ADAPTER", "VertexAdapter"]
