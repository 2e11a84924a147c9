from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.models.datasets import DatasetItem

_MAX_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class ShownMessage:
    role: str
    text: str


def shown_messages(item: DatasetItem) -> list[ShownMessage]:
    shown = [ShownMessage(str(message.get("role")), _text(message)) for message in item.messages]
    for name, value in (("variables", item.variables), ("parameters", item.parameters)):
        if value:
            shown.append(ShownMessage(name, _json(value)))
    return shown


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    others = {name: value for name, value in message.items() if name not in ("role", "content")}
    texts = [content if isinstance(content, str) else _json(content)] if content is not None else []
    return "\n".join([*texts, *([_json(others)] if others else [])])[:_MAX_CHARACTERS]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)[:_MAX_CHARACTERS]
