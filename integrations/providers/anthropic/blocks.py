"""The vendor's own content blocks: what its tools were asked and answered, connectors, compactions, citations.

An answer that holds any of them gives out its blocks as they came, in order, as `provider_specific_fields.content`:
some are encrypted, some signed, and all have to come back where they were for Claude to go on with them, above all
after `pause_turn` (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons). `history.py` takes
them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from integrations.providers.anthropic.shapes import Block

# What OpenAI's dialect, or the gateway's reasoning, has a place for.
_TRANSLATED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})

Json = dict[str, Any]


def is_own(block: Block) -> bool:
    """The block says what a message of OpenAI's dialect cannot."""
    if block.type == "text":
        return bool(block.citations)
    if block.type == "tool_use":
        # Called from code that the vendor runs, or of a toolset: it has to come back with that.
        caller = block.caller.get("type") if isinstance(block.caller, Mapping) else None
        return caller not in (None, "direct") or bool(block.toolset_name)
    return block.type not in _TRANSLATED


@dataclass(slots=True)
class OpenBlock:
    """A block of a stream under way. `position` is the tool call's among the calls, or the reasoning detail's index;
    `start` is where its text begins in the whole answer; `raw`: the vendor's own block as it began."""

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
        """The block as a whole answer has it."""
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
        """Takes a delta of another type than the usual ones (`compaction_delta`): texts grow, the rest is replaced."""
        if self.raw is None:
            return
        for name, value in delta.items():
            older = self.raw.get(name)
            if name != "type" and value is not None:
                self.raw[name] = older + value if isinstance(older, str) and isinstance(value, str) else value


class Gathered:
    """The whole blocks of a stream, which wait until one of the vendor's own is among them: then all go out."""

    __slots__ = ("_waiting", "has_own")

    def __init__(self) -> None:
        self._waiting: list[OpenBlock] = []
        self.has_own = False

    def add(self, block: OpenBlock) -> list[Json]:
        """The blocks that may go out now."""
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
    """Empty when an answer that was cut off left half of it."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
