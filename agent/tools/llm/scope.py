from __future__ import annotations

SCOPE = "llm:read"
