"""Reads JSONL: one object per line, with `messages`, optional request fields and optional `next_user_turns`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN_PROMPTS = Path(__file__).with_name("prompts.jsonl")

_REQUEST_FIELDS = (
    "tools",
    "tool_choice",
    "response_format",
    "stop",
    "temperature",
    "max_tokens",
    "top_p",
    "n",
    "seed",
)


class PromptFileError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class DemoConversation:
    """`options` are request fields besides model and messages; `next_user_turns` follow the model's answers."""

    name: str
    messages: list[dict[str, Any]]
    options: Mapping[str, Any]
    next_user_turns: tuple[str, ...]
    stream: bool


def read_conversations(file: Path, *, limit: int | None) -> list[DemoConversation]:
    """Every second conversation streams, unless its line says otherwise. Raises PromptFileError."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptFileError(f"{file}: {error}") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return [_conversation(file, number, line) for number, line in numbered[:limit]]


def _conversation(file: Path, number: int, line: str) -> DemoConversation:
    try:
        row = json.loads(line)
        return DemoConversation(
            name=str(row.get("id", number)),
            messages=list(row["messages"]),
            options={field: row[field] for field in _REQUEST_FIELDS if row.get(field) is not None},
            next_user_turns=tuple(row.get("next_user_turns") or ()),
            stream=bool(row.get("stream", number % 2 == 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PromptFileError(f"{file}, line {number}: not a conversation ({error!r})") from error
