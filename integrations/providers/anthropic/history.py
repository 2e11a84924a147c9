"""Restores an earlier answer of Claude from the vendor's blocks that the client sends back (see `blocks.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from integrations.providers.common.conversation import Block, Native, Text, ToolCall, stored_content

_THOUGHTS = ("thinking", "redacted_thinking")
# A call has to come back with two fields: the code that made it and the toolset that it belongs to.
CALL_FIELDS = ("caller", "toolset_name")

Json = Mapping[str, Any]


def rebuild(message: Json, blocks: list[Block]) -> list[Block]:
    """Returns `blocks` in the vendor's order with its own blocks between them. They are returned unchanged when the
    message has no blocks of this vendor, or when the client has changed the message's text, which then takes
    precedence."""
    content = stored_content(message, blocks, _is_block)
    if content is None:
        return blocks
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    texts = "".join(block.text for block in blocks if isinstance(block, Text))
    if texts != "".join(part["text"] for part in content if part["type"] == "text"):
        return blocks
    if [call.id for call in calls] != [part.get("id") for part in content if part["type"] == "tool_use"]:
        return blocks
    waiting = iter(calls)
    rebuilt: list[Block] = [
        _called(next(waiting), part) if part["type"] == "tool_use" else _native(part)
        for part in _without_last_thoughts(content)
        if _is_accepted(part)
    ]
    return rebuilt or blocks


def _is_block(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    return isinstance(part.get("text"), str) if kind == "text" else isinstance(kind, str)


def _without_last_thoughts(content: Sequence[Json]) -> Sequence[Json]:
    """Drops thoughts at the end, which the vendor refuses; an answer that was cut off may end with one."""
    end = len(content)
    while end and (content[end - 1]["type"] in _THOUGHTS or not _is_accepted(content[end - 1])):
        end -= 1
    return content[:end]


def _is_accepted(part: Json) -> bool:
    """The vendor refuses a blank text and a thought without a signature."""
    match part["type"]:
        case "text":
            return bool(part["text"].strip())
        case "thinking":
            return bool(part.get("signature"))
        case "redacted_thinking":
            return bool(part.get("data"))
    return True


def _called(call: ToolCall, part: Json) -> ToolCall:
    return replace(call, extra={name: part[name] for name in CALL_FIELDS if part.get(name)})


def _native(part: Json) -> Native:
    return Native("document", "", part={name: value for name, value in part.items() if name != "index"})
