"""The scope of every tool in this package."""

from __future__ import annotations

SCOPE = "llm:read"
