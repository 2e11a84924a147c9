"""Vertex AI: Gemini in Google's dialect, and the models of other publishers in theirs, at one address with one secret.
`ADAPTER` is the adapter; `publishers` finds the publisher of a model, `partners` its dialect and path. A publisher with
a further dialect is one row of `PARTNERS`."""

from __future__ import annotations

from integrations.providers.vertex.adapter import ADAPTER, VertexAdapter

__all__ = ["ADAPTER", "VertexAdapter"]
