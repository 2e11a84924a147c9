from __future__ import annotations

from uuid import UUID

BASE = "/api/llm/prompts"


def config_path(config_id: UUID | str, *rest: object) -> str:
    return "/".join([f"{BASE}/configs/{config_id}", *map(str, rest)])
