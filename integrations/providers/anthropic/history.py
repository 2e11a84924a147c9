"""An answer of Claude's that comes back with its own blocks (see `blocks.py`) is put together from them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from integrations.providers.common.conversation import Attachment, Block, Native, Text, ToolCall

_THOUGHTS = ("thinking", "redacted_thinking")
# What a call has to come back with besides: the code that made it, the toolset that it is of.
OF_CALLS = ("caller", "toolset_name")

Json = Mapping[str, Any]


def rebuild(message: Json, blocks: list[Block]) -> list[Block]:
    """`blocks` in the vendor's order with its own blocks between them. As they are when there is nothing of this vendor
    to put between them, or when what it said is not what the message says any more: then the message counts."""
    content = _content(message.get("provider_specific_fields"))
    if content is None or any(isinstance(block, Attachment) for block in blocks):
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
        if _says(part)
    ]
    return rebuilt or blocks


def _content(fields: Any) -> Sequence[Json] | None:
    """Returns the stored blocks; None when the field holds no list of this vendor's blocks, for example another
    vendor's."""
    content = fields.get("content") if isinstance(fields, Mapping) else None
    return content if isinstance(content, list) and all(map(_is_block, content)) else None


def _is_block(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    return isinstance(part.get("text"), str) if kind == "text" else isinstance(kind, str)


def _without_last_thoughts(content: Sequence[Json]) -> Sequence[Json]:
    """The vendor refuses a message that ends in a thought: an answer that was cut off may."""
    end = len(content)
    while end and (content[end - 1]["type"] in _THOUGHTS or not _says(content[end - 1])):
        end -= 1
    return content[:end]


def _says(part: Json) -> bool:
    """Blank texts are refused, and so are thoughts that are not signed."""
    match part["type"]:
        case "text":
            return bool(part["text"].strip())
        case "thinking":
            return bool(part.get("signature"))
        case "redacted_thinking":
            return bool(part.get("data"))
    return True


def _called(call: ToolCall, part: Json) -> ToolCall:
    return replace(call, extra={name: part[name] for name in OF_CALLS if part.get(name)})


def _native(part: Json) -> Native:
    """Returns the block as it is sent again, without its number in the stream (see `Chunks.specific`)."""
    return Native("document", "", part={name: value for name, value in part.items() if name != "index"})
