"""Converse's own content blocks: citations of documents and pages, calls and results of Amazon's tools. An answer that
holds any of them returns all its blocks unchanged and in order as `provider_specific_fields.content`, except for
images, which the message has; `history.py` puts them back into the next request."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from integrations.providers.bedrock.shapes import SERVER_TOOL

Json = dict[str, Any]

# OpenAI's dialect, or the gateway's form of reasoning, can express blocks of text and reasoning.
_TRANSLATED = ("text", "reasoningContent")
_OWN = ("citationsContent", "toolResult")


def own_content(content: Any, *, no_calls: bool) -> list[Json]:
    """Returns the decoded blocks of a whole answer; empty when none of them is Converse's own. With `no_calls` the
    calls of the client's tools are left out, as they are in the message."""
    blocks = [block for block in map(_known, content if isinstance(content, list) else ()) if block]
    if no_calls:
        blocks = [block for block in blocks if "toolUse" not in block or is_own(block)]
    return blocks if any(map(is_own, blocks)) else []


def is_own(block: Mapping[str, Any]) -> bool:
    """Returns True for a block whose content a message of OpenAI's dialect cannot express."""
    return any(name in block for name in _OWN) or block.get("toolUse", {}).get("type") == SERVER_TOOL


def _known(block: Any) -> Json:
    """Returns the block with only those fields that a later request accepts; an empty object for other blocks."""
    if not isinstance(block, Mapping):
        return {}
    if isinstance(block.get("toolUse"), Mapping):
        return {"toolUse": {**block["toolUse"], "input": block["toolUse"].get("input") or {}}}
    return {name: block[name] for name in (*_TRANSLATED, *_OWN) if block.get(name)}


@dataclass(slots=True)
class Pieces:
    """The content of a block that is being streamed. `use` and `result` come from the event that began it."""

    texts: list[str] = field(default_factory=list)
    citations: list[Json] = field(default_factory=list)
    use: Json | None = None
    input: list[str] = field(default_factory=list)
    result: Json | None = None
    results: list[Any] = field(default_factory=list)

    def whole(self, reasoning: str, signature: str, redacted: bytes) -> Json:
        """Returns the block in the form of a whole answer; an empty object for a block without content."""
        if self.use is not None:
            return {"toolUse": {**self.use, "input": _input("".join(self.input))}}
        if self.result is not None:
            return {"toolResult": {**self.result, "content": self.results}}
        text = "".join(self.texts)
        if self.citations:
            text_block = {"content": [{"text": text}]} if text else {}
            return {"citationsContent": {**text_block, "citations": self.citations}}
        if redacted:
            return {"reasoningContent": {"redactedContent": base64.b64encode(redacted).decode()}}
        if reasoning or signature:
            signed = {"signature": signature} if signature else {}
            return {"reasoningContent": {"reasoningText": {"text": reasoning, **signed}}}
        return {"text": text} if text else {}


class CollectedBlocks:
    """Collects the complete blocks of a stream. They wait until one of Converse's own is among them, and then all are
    sent."""

    __slots__ = ("_has_own", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[Json] = []
        self._has_own = False

    def add(self, block: Json) -> list[Json]:
        """Adds a complete block and returns the blocks that may be sent now."""
        if block:
            self._waiting.append(block)
            self._has_own = self._has_own or is_own(block)
        if not self._has_own:
            return []
        out, self._waiting = self._waiting, []
        return out


def texts_of(block: Mapping[str, Any]) -> Iterator[str]:
    """Yields the texts that a block adds to the message's text."""
    if isinstance(block.get("text"), str):
        yield block["text"]
    cited = block.get("citationsContent")
    parts = cited.get("content") if isinstance(cited, Mapping) else None
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]


def _input(text: str) -> Any:
    """Returns the decoded input, an empty object when an answer that was cut off left half of it."""
    try:
        return msgspec.json.decode(text) or {}
    except msgspec.DecodeError:
        return {}
