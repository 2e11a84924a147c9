"""Translates a message of the assistant: its texts, its calls of tools, and what it thought, with signatures.

A chat completion has one place for the text and one behind it for the calls. A message that has anything else, or
another order, also carries its blocks as `provider_specific_fields.content`, from which the adapter of Anthropic
restores it (`integrations/providers/anthropic/history.py`); other providers get the texts and the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.surfaces.checks import (
    invalid,
    optional_text,
    required_name,
    required_object,
    required_text,
)
from gateway.surfaces.messages.blocks import content_of, marked, type_of
from gateway.surfaces.messages.foreign import (
    CLAUDE,
    is_foreign,
    is_foreign_search,
    is_foreign_thought,
    opened,
    own_citations,
)

_encode = msgspec.json.Encoder().encode

Json = dict[str, Any]


def assistant_message(content: str | list[Any], place: str) -> Json:
    """Returns the message. Raises ValidationError."""
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    reader = _Reader()
    for index, block in enumerate(content):
        reader.add(block, f"{place}.content[{index}]")
    return reader.message()


class _Reader:
    """Reads the blocks of one message.

    `_count` counts the blocks that Anthropic gets again: the index of a thinking block is their number in front of it.
    `_is_plain` is True while a chat completion's text and calls express the whole message.
    """

    __slots__ = ("_blocks", "_calls", "_count", "_details", "_is_plain", "_parts", "_thoughts")

    def __init__(self) -> None:
        self._parts: list[Json] = []
        self._calls: list[Json] = []
        self._details: list[Json] = []
        self._thoughts: list[str] = []
        self._blocks: list[Json] = []
        self._count = 0
        self._is_plain = True

    def add(self, block: Any, place: str) -> None:
        kind = type_of(block, place)
        if is_foreign_search(block):
            return
        match kind:
            case "text":
                self._text(block, place)
            case "tool_use":
                self._call(block, place)
            case "thinking":
                self._thought(block, place)
            case "redacted_thinking":
                self._hidden_thought(block, place)
            case "tool_result":
                raise invalid(place, "a tool_result belongs to a message of the user")
            case _:
                self._is_plain = False
        if not is_foreign_thought(block):
            self._blocks.append(own_citations(block))

    def message(self) -> Json:
        made: Json = {"role": "assistant", "content": content_of(self._parts)}
        if self._calls:
            made["content"] = made["content"] or None
            made["tool_calls"] = self._calls
        if self._thoughts:
            made["reasoning_content"] = "".join(self._thoughts)
        if self._details:
            made["reasoning_details"] = self._details
        if not self._is_plain:
            made["provider_specific_fields"] = {"content": self._blocks}
        return made

    def _text(self, block: Json, place: str) -> None:
        text = required_text(block, "text", place)
        self._is_plain = self._is_plain and not self._calls and not own_citations(block).get("citations")
        if text:
            self._parts.append(marked({"type": "text", "text": text}, block, place))
            self._count += not text.isspace()

    def _call(self, block: Json, place: str) -> None:
        call_id, name = required_name(block, "id", place), required_name(block, "name", place)
        arguments = _encode(required_object(block, "input", place)).decode()
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        self._calls.append(marked(call, block, place))
        self._is_plain = self._is_plain and _is_direct(block)
        self._count += 1

    def _thought(self, block: Json, place: str) -> None:
        text = required_text(block, "thinking", place)
        signature = optional_text(block, "signature", place) or ""
        if text:
            self._thoughts.append(text)
        if is_foreign(signature):
            self._foreign(opened(signature, f"{place}.signature"), text)
        elif signature:
            self._claudes({"type": "reasoning.text", "text": text, "signature": signature})

    def _hidden_thought(self, block: Json, place: str) -> None:
        data = required_text(block, "data", place)
        if is_foreign(data):
            self._foreign(opened(data, f"{place}.data"), "")
        elif data:
            self._claudes({"type": "reasoning.encrypted", "data": data})

    def _claudes(self, detail: Json) -> None:
        self._details.append({**detail, "format": CLAUDE, "index": self._count})
        self._count += 1

    def _foreign(self, detail: Json, text: str) -> None:
        """Adds the entry of another vendor with the text of its block. Reasoning that no vendor signed has no entry."""
        if not detail:
            return
        field = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(detail.get("type")))
        if field is not None and text:
            detail.setdefault(field, text)
        self._details.append(detail)


def _is_direct(block: Mapping[str, Any]) -> bool:
    """Returns False for a call from code that the vendor runs, or of a toolset, which has to come back with that
    information."""
    caller = block.get("caller")
    return not block.get("toolset_name") and (not isinstance(caller, dict) or caller.get("type") == "direct")
