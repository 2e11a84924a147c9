"""Restores an earlier answer from Converse's own blocks that the client sends back (see `blocks.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from integrations.providers.bedrock.blocks import texts_of
from integrations.providers.bedrock.models import Model
from integrations.providers.bedrock.shapes import SERVER_TOOL
from integrations.providers.common.conversation import Attachment, Block, Native, Reasoning, Text, ToolCall

_OBJECTS = ("citationsContent", "toolUse", "toolResult", "reasoningContent")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """Restores answers. `system_tools` are the vendor's own tools that the request offers; calls and results of other
    tools cannot be sent to the model."""

    model: Model
    system_tools: Collection[str]

    def __call__(self, message: Json, blocks: list[Block]) -> list[Block]:
        """Returns `blocks` in Converse's order with its own blocks between them. They are returned unchanged when the
        message has no blocks of this vendor, or when the client has changed the message's text, which then takes
        precedence."""
        content = _content(message.get("provider_specific_fields"))
        if content is None or any(isinstance(block, Attachment) for block in blocks):
            return blocks
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        thoughts = [block for block in blocks if isinstance(block, Reasoning) and (block.signature or block.data)]
        answer_text = "".join(block.text for block in blocks if isinstance(block, Text))
        if answer_text != "".join(text for part in content for text in texts_of(part)):
            return blocks
        if [call.id for call in calls] != [part["toolUse"].get("toolUseId") for part in content if _is_call(part)]:
            return blocks
        if len(thoughts) != sum(map(_is_signed, content)):
            return blocks
        return list(self._in_order(content, calls, thoughts)) or blocks

    def _in_order(self, content: list[Json], calls: list[ToolCall], thoughts: list[Reasoning]) -> Iterator[Block]:
        waiting_calls, waiting_thoughts = iter(calls), iter(thoughts)
        answered = self._answered(content)
        for part in content:
            if _is_call(part):
                yield next(waiting_calls)
            elif _is_signed(part):
                # The thought is already at its place, and its number in the message must not move it.
                yield replace(next(waiting_thoughts), index=0)
            elif "citationsContent" in part:
                yield from self._cited(part)
            elif "text" in part:
                yield Text(part["text"])
            elif _use_id(part) in answered:
                yield _native("toolUse" if "toolUse" in part else "toolResult", part)

    def _cited(self, part: Json) -> Iterator[Block]:
        """Yields the cited text alone where the model has no such blocks, and without citations that have no text."""
        text = "".join(texts_of(part))
        if not text.strip():
            return
        is_taken = (self.model.may_be_claude or self.model.is_nova) and _is_citing(part["citationsContent"])
        yield _native("citationsContent", part) if is_taken else Text(text)

    def _answered(self, content: list[Json]) -> set[str]:
        """Returns the ids of calls of the vendor's tools that are offered again and have results."""
        offered = {
            str(part["toolUse"].get("toolUseId"))
            for part in content
            if "toolUse" in part and not _is_call(part) and str(part["toolUse"].get("name")) in self.system_tools
        }
        return offered & {str(part["toolResult"].get("toolUseId")) for part in content if "toolResult" in part}


def _content(fields: Any) -> list[Json] | None:
    """Returns the stored blocks; None when the field holds no list of Converse's blocks (another vendor's)."""
    content = fields.get("content") if isinstance(fields, Mapping) else None
    return content if isinstance(content, list) and content and all(map(_is_block, content)) else None


def _is_block(part: Any) -> bool:
    """Returns True for one of Converse's blocks with no further key except its number in the stream (see
    `Chunks.specific`)."""
    names = [name for name in part if name != "index"] if isinstance(part, Mapping) else []
    if len(names) != 1:
        return False
    (name,) = names
    return isinstance(part[name], str) if name == "text" else name in _OBJECTS and isinstance(part[name], Mapping)


def _is_citing(block: Json) -> bool:
    return all(
        isinstance(block.get(name), list) and all(isinstance(entry, Mapping) for entry in block[name])
        for name in ("content", "citations")
    )


def _is_call(part: Json) -> bool:
    return "toolUse" in part and part["toolUse"].get("type") != SERVER_TOOL


def _is_signed(part: Json) -> bool:
    thought = part.get("reasoningContent")
    if not isinstance(thought, Mapping):
        return False
    text = thought.get("reasoningText")
    return bool(thought.get("redactedContent")) or (isinstance(text, Mapping) and bool(text.get("signature")))


def _use_id(part: Json) -> str:
    return str((part.get("toolUse") or part.get("toolResult") or {}).get("toolUseId"))


def _native(name: str, part: Json) -> Native:
    return Native("document", "", part={"type": name, name: part[name]})
