"""Vertex AI: Gemini in Google's dialect, and other publishers' models in theirs, at one address with one secret.

A publisher with a further dialect is one row of `PARTNERS`.
"""

from __future__ import annotations

from integrations.providers.vertex.adapter import ADAPTER, VertexAdapter

__all__ = ["ADAPTER", "VertexAdapter"]
