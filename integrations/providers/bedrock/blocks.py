"""Converse's own content blocks: citations of documents and pages, calls and results of Amazon's tools. An answer that
holds any of them returns all its blocks unchanged and in order as `provider_specific_fields.content`, except for
images, which the message has; `Rebuilder` puts them back into the next request."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from integrations.providers.bedrock.models import Model
from integrations.providers.bedrock.shapes import SERVER_TOOL
from integrations.providers.common.completion import input_of
from integrations.providers.common.conversation import Block, Native, Reasoning, Text, ToolCall, stored_content

_OBJECTS = ("citationsContent", "toolUse", "toolResult", "reasoningContent")


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """Restores answers. `system_tools` are the vendor's own tools that the request offers; calls and results of other
    tools cannot be sent to the model."""

    model: Model
    system_tools: Collection[str]

    def __call__(self, message: Mapping[str, Any], blocks: list[Block]) -> list[Block]:
        """Returns `blocks` in Converse's order with its own blocks between them. They are returned unchanged when the
        message has no blocks of this vendor, or when the client has changed the message's text, which then takes
        precedence."""
        content = stored_content(message, blocks, _is_block)
        if content is None:
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

    def _in_order(
        self, content: list[Mapping[str, Any]], calls: list[ToolCall], thoughts: list[Reasoning]
    ) -> Iterator[Block]:
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

    def _cited(self, part: Mapping[str, Any]) -> Iterator[Block]:
        """Yields the cited text alone where the model has no such blocks, and without citations that have no text."""
        text = "".join(texts_of(part))
        if not text.strip():
            return
        is_taken = (self.model.may_be_claude or self.model.is_nova) and _is_citing(part["citationsContent"])
        yield _native("citationsContent", part) if is_taken else Text(text)

    def _answered(self, content: list[Mapping[str, Any]]) -> set[str]:
        """Returns the ids of calls of the vendor's tools that are offered again and have results."""
        offered = {
            str(part["toolUse"].get("toolUseId"))
            for part in content
            if "toolUse" in part and not _is_call(part) and str(part["toolUse"].get("name")) in self.system_tools
        }
        return offered & {str(part["toolResult"].get("toolUseId")) for part in content if "toolResult" in part}


def _is_block(part: Any) -> bool:
    """Returns True for one of Converse's blocks with no further key except its number in the stream (see
    `Chunks.specific`)."""
    names = [name for name in part if name != "index"] if isinstance(part, Mapping) else []
    if len(names) != 1:
        return False
    (name,) = names
    return isinstance(part[name], str) if name == "text" else name in _OBJECTS and isinstance(part[name], Mapping)


def _is_citing(block: Mapping[str, Any]) -> bool:
    return all(
        isinstance(block.get(name), list) and all(isinstance(entry, Mapping) for entry in block[name])
        for name in ("content", "citations")
    )


def _is_call(part: Mapping[str, Any]) -> bool:
    return "toolUse" in part and part["toolUse"].get("type") != SERVER_TOOL


def _is_signed(part: Mapping[str, Any]) -> bool:
    thought = part.get("reasoningContent")
    if not isinstance(thought, Mapping):
        return False
    text = thought.get("reasoningText")
    return bool(thought.get("redactedContent")) or (isinstance(text, Mapping) and bool(text.get("signature")))


def _use_id(part: Mapping[str, Any]) -> str:
    return str((part.get("toolUse") or part.get("toolResult") or {}).get("toolUseId"))


def _native(name: str, part: Mapping[str, Any]) -> Native:
    return Native("document", "", part={"type": name, name: part[name]})


Json = dict[str, Any]

# OpenAI's dialect, or the gateway's form of reasoning, can express blocks of text and reasoning.
_TRANSLATED = ("text", "reasoningContent")
_OWN = ("citationsContent", "toolResult")


def own_content(content: Any, *, no_calls: bool) -> list[Json]:
    blocks = [block for block in map(_known, content if isinstance(content, list) else ()) if block]
    if no_calls:
        blocks = [block for block in blocks if "toolUse" not in block or is_own(block)]
    return blocks if any(map(is_own, blocks)) else []


def is_own(block: Mapping[str, Any]) -> bool:
    return any(name in block for name in _OWN) or block.get("toolUse", {}).get("type") == SERVER_TOOL


def _known(block: Any) -> Json:
    if not isinstance(block, Mapping):
        return {}
    if isinstance(block.get("toolUse"), Mapping):
        return {"toolUse": {**block["toolUse"], "input": block["toolUse"].get("input") or {}}}
    return {name: block[name] for name in (*_TRANSLATED, *_OWN) if block.get(name)}


@dataclass(slots=True)
class Pieces:
    texts: list[str] = field(default_factory=list)
    citations: list[Json] = field(default_factory=list)
    use: Json | None = None
    input: list[str] = field(default_factory=list)
    result: Json | None = None
    results: list[Any] = field(default_factory=list)

    def whole(self, reasoning: str, signature: str, redacted: bytes) -> Json:
        if self.use is not None:
            return {"toolUse": {**self.use, "input": input_of("".join(self.input))}}
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


def texts_of(block: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(block.get("text"), str):
        yield block["text"]
    cited = block.get("citationsContent")
    parts = cited.get("content") if isinstance(cited, Mapping) else None
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]
