"""The vendor's own content blocks: calls and results of its tools, connectors, compactions, citations.

An answer that holds any of them returns all its blocks unchanged and in order as `provider_specific_fields.content`:
some are encrypted, some signed, and Claude needs all of them back in their places to continue, above all after
`pause_turn` (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons). `history.py` puts them back
into the next request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from integrations.providers.anthropic.shapes import Block

# OpenAI's dialect, or the gateway's form of reasoning, can express blocks of text, thinking and tool calls.
_TRANSLATED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})

Json = dict[str, Any]


def is_own(block: Block) -> bool:
    """Returns True for a block whose content a message of OpenAI's dialect cannot express."""
    if block.type == "text":
        return bool(block.citations)
    if block.type == "tool_use":
        # A call from code that the vendor runs, or of a toolset, has to come back with that information.
        caller = block.caller.get("type") if isinstance(block.caller, Mapping) else None
        return caller not in (None, "direct") or bool(block.toolset_name)
    return block.type not in _TRANSLATED


@dataclass(slots=True)
class OpenBlock:
    """A block of a stream that is still open. `position` is the tool call's number among the calls, or the reasoning
    detail's index; `start` is the offset of its text in the whole answer; `raw` is the vendor's own block as it began.
    """

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
        """Returns the block in the form of a whole answer."""
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
                "input": _input("".join(self.arguments) or begun),
            }
        return {**self.raw, "input": _input("".join(self.arguments))} if self.arguments else self.raw

    def merge(self, delta: Mapping[str, Any]) -> None:
        """Applies a delta of an unusual type (`compaction_delta`): texts are appended, other fields are replaced."""
        if self.raw is None:
            return
        for name, value in delta.items():
            older = self.raw.get(name)
            if name != "type" and value is not None:
                self.raw[name] = older + value if isinstance(older, str) and isinstance(value, str) else value


class CollectedBlocks:
    """Collects the complete blocks of a stream. They wait until one of the vendor's own is among them, and then all are
    sent."""

    __slots__ = ("_waiting", "has_own")

    def __init__(self) -> None:
        self._waiting: list[OpenBlock] = []
        self.has_own = False

    def add(self, block: OpenBlock) -> list[Json]:
        """Adds a complete block and returns the blocks that may be sent now."""
        self._waiting.append(block)
        self.has_own = self.has_own or block.is_own()
        if not self.has_own:
            return []
        out = [one.whole() for one in self._waiting]
        self._waiting.clear()
        return out


def has_own(blocks: Iterable[Block]) -> bool:
    return any(map(is_own, blocks))


def _input(text: str) -> Any:
    """Returns the decoded input, an empty object when an answer that was cut off left half of it."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
