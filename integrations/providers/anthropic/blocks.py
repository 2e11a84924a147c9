"""The vendor's own content blocks: calls and results of its tools, connectors, compactions, citations.

An answer with such a block returns all its blocks, unchanged and in order, as `provider_specific_fields.content`. Some
are encrypted or signed, and Claude needs each in its place to continue, above all after `pause_turn`
(https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons). `history.py` puts them back into the next
request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from integrations.providers.anthropic.shapes import Block
from integrations.providers.common.completion import input_of

# OpenAI's dialect, or the gateway's form of reasoning, can express blocks of text, thinking and tool calls.
_TRANSLATED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})

Json = dict[str, Any]


def is_own(block: Block) -> bool:
    if block.type == "text":
        return bool(block.citations)
    if block.type == "tool_use":
        # A call from code that the vendor runs, or of a toolset, has to come back with that information.
        caller = block.caller.get("type") if isinstance(block.caller, Mapping) else None
        return caller not in (None, "direct") or bool(block.toolset_name)
    return block.type not in _TRANSLATED


@dataclass(slots=True)
class OpenBlock:
    """A block of a stream that is still open. `position` is the index of the tool call or reasoning detail; `start` is
    the offset of its text in the whole answer; `raw` is the vendor's block as it began."""

    block: Block
    position: int = 0
    start: int = 0
    raw: Json | None = None
    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    citations: list[Any] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def is_own(self) -> bool:
        return bool(self.citations) or is_own(self.block)

    def whole(self) -> Json:
        block = self.block
        match block.type:
            case "text":
                text = {"type": "text", "text": "".join(self.texts)}
                return {**text, "citations": self.citations} if self.citations else text
            case "thinking":
                return {"type": "thinking", "thinking": block.thinking or "", "signature": block.signature or ""}
            case "redacted_thinking":
                return {"type": "redacted_thinking", "data": block.data}
        if self.raw is None:
            begun = bytes(block.input).decode()
            return {
                "type": block.type,
                "id": block.id,
                "name": block.name,
                "input": input_of("".join(self.arguments) or begun),
            }
        return {**self.raw, "input": input_of("".join(self.arguments))} if self.arguments else self.raw

    def merge(self, delta: Mapping[str, Any]) -> None:
        if self.raw is None:
            return
        for name, value in delta.items():
            older = self.raw.get(name)
            if name != "type" and value is not None:
                self.raw[name] = older + value if isinstance(older, str) and isinstance(value, str) else value


def has_own(blocks: Iterable[Block]) -> bool:
    return any(map(is_own, blocks))
