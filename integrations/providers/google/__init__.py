"""Gemini's dialect (https://ai.google.dev/api/generate-content), on the Gemini API and on Vertex AI."""

from __future__ import annotations

from integrations.providers.google.adapter import GEMINI, VERTEX, GoogleAdapter

__all__ = ["GEMINI", "VERTEX", "GoogleAdapter"]
