"""Fits instructions to servers whose chat templates take one `system` message, only at the beginning.

Claude Code and Codex send further ones in mid-conversation, which Qwen's template, for one, refuses with 400 "System
message must be at the beginning." (https://github.com/vllm-project/vllm/issues/41114).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.common.instructions import marked

_ROLES = ("system", "developer")


def with_one_system_message(messages: list[Any]) -> list[Any]:
    """Joins the instructions at the beginning, and turns each later one into a marked text of the user's in place, so
    that the preceding prompt stays cached."""
    made: list[Any] = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            made.append(message)
        elif not made:
            made.append({**message, "role": "system"})
        elif len(made) == 1 and made[0].get("role") == "system":
            made[0] = _joined(made[0], message.get("content"))
        elif isinstance(made[-1], Mapping) and made[-1].get("role") == "user":
            made[-1] = _joined(made[-1], _as_user(message.get("content")))
        else:
            made.append({"role": "user", "content": _as_user(message.get("content"))})
    return made


def _joined(message: Mapping[str, Any], content: Any) -> dict[str, Any]:
    own = message.get("content")
    if isinstance(own, str) and isinstance(content, str):
        return {**message, "content": f"{own}\n\n{content}"}
    return {**message, "content": [*_parts(own), *_parts(content)]}


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _as_user(content: Any) -> Any:
    if isinstance(content, str):
        return marked(content)
    return [{**part, "text": marked(part["text"])} for part in _parts(content) if _is_text(part)]


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)
