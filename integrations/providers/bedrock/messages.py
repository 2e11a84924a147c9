"""The conversation as Converse's `system` and `messages`.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html: roles alternate and the user begins;
no text may be blank.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from integrations.providers.bedrock.media import PROVIDER, MediaBlocks
from integrations.providers.bedrock.models import CLAUDE_FORMAT, Model
from integrations.providers.common.conversation import (
    Attachment,
    Conversation,
    Native,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from integrations.providers.errors import UnsupportedParameterError

NativeBlock = dict[str, Any]

# Content parts in Converse's own words that pass as they are; `json` in tool results only.
NATIVE_PARTS = ("guardContent", "searchResult", "cachePoint", "json")

# The user has to begin; a client may have begun with a greeting of the assistant's.
_BEGIN = "(The conversation begins.)"
_ID_LENGTH = 64
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_.:-]")


@dataclass(slots=True)
class MessageWriter:
    """Writes the messages of one request."""

    model: Model
    media: MediaBlocks

    def system(self, conversation: Conversation) -> list[NativeBlock]:
        blocks: list[NativeBlock] = []
        for text in conversation.system:
            if text.text.strip():
                blocks.append({"text": text.text})
                blocks += self.cache_point(text.cache_control)
        return blocks

    def messages(self, conversation: Conversation) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        for turn in conversation.turns:
            blocks = self._turn(turn)
            if not blocks:
                continue
            if messages and messages[-1]["role"] == turn.role:
                messages[-1]["content"] += blocks
            else:
                messages.append({"role": turn.role, "content": blocks})
        if not messages or messages[0]["role"] != "user":
            messages.insert(0, {"role": "user", "content": [{"text": _BEGIN}]})
        _strip_prefill(messages)
        return messages

    def cache_point(self, marker: Mapping[str, Any] | None, *, supported: bool | None = None) -> list[NativeBlock]:
        """Anthropic's marker as the block that stands behind what it marks; models that cache nothing refuse it."""
        if not marker or not (self.model.caches_messages if supported is None else supported):
            return []
        point: dict[str, Any] = {"type": "default"}
        if marker.get("ttl") and not self.model.is_nova:
            point["ttl"] = marker["ttl"]
        return [{"cachePoint": point}]

    def _turn(self, turn: Turn) -> list[NativeBlock]:
        """Groups of blocks that stay together: a cache point behind what it marks."""
        thoughts: list[tuple[int, list[NativeBlock]]] = []
        others: list[list[NativeBlock]] = []
        placed: list[list[NativeBlock]] = []
        was_said = False
        for block in turn.blocks:
            if isinstance(block, Reasoning):
                if others:  # reasoning stands first in a message: here begins the next one
                    placed += _in_place(thoughts, others)
                    thoughts, others = [], []
                thoughts += [(block.index or 0, [thought]) for thought in self._reasoning(block)]
                was_said = False
            elif written := self._written(block):
                group = written + self.cache_point(_marker_of(block))
                is_said = turn.role == "assistant" and isinstance(block, (Text, Native))
                if is_said and was_said:  # the text of an answer is one block to the places of thoughts
                    others[-1] += group
                else:
                    others.append(group)
                was_said = is_said
        placed += _in_place(thoughts, others)
        if turn.role == "user":
            # Claude wants results first: https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
            placed.sort(key=lambda group: "toolResult" not in group[0])
        return self._with_text([block for group in placed for block in group])

    def _with_text(self, blocks: list[NativeBlock]) -> list[NativeBlock]:
        documents = [str(block["document"].get("name") or "Document") for block in blocks if "document" in block]
        if documents and not any("text" in block for block in blocks):
            # "A document needs a text block beside it" (API_runtime_DocumentBlock).
            blocks.append({"text": documents[0]})
        return blocks

    def _written(self, block: Text | Attachment | ToolCall | ToolResult) -> list[NativeBlock]:
        """Empty for a blank text."""
        match block:
            case Text():
                return [{"text": block.text}] if block.text.strip() else []
            case Attachment():
                return [self._attachment(block)]
            case ToolCall():
                use = {"toolUseId": block.id, "name": block.name, "input": block.arguments_object()}
                return [{"toolUse": use}]
            case ToolResult():
                return [self._result(block)]

    def _attachment(self, attachment: Attachment) -> NativeBlock:
        if isinstance(attachment, Native):
            name = attachment.part["type"]
            return {name: attachment.part[name]}
        return self.media.block(attachment)

    def _reasoning(self, block: Reasoning) -> Iterator[NativeBlock]:
        """Only what this dialect gave out for such a model; Claude refuses thoughts without a signature."""
        if block.format != self.model.reasoning_format:
            return
        if block.data:
            if redacted := redacted_bytes(block.data, block.format):
                yield {"reasoningContent": {"redactedContent": redacted}}
        elif block.signature:
            yield {"reasoningContent": {"reasoningText": {"text": block.text, "signature": block.signature}}}
        elif block.text and not self.model.may_be_claude:
            yield {"reasoningContent": {"reasoningText": {"text": block.text}}}

    def _result(self, result: ToolResult) -> NativeBlock:
        """Raises UnsupportedParameterError for sound, the only file that may not stand in a result."""
        content = [
            {"text": part.text} if isinstance(part, Text) else self._attachment(part)
            for part in result.content
            if not isinstance(part, Text) or part.text.strip()
        ]
        if any("audio" in block for block in content):
            raise UnsupportedParameterError("messages", "Bedrock takes no sound in a tool's result", provider=PROVIDER)
        # A blank text is refused here too, an empty object is not.
        native: dict[str, Any] = {"toolUseId": result.call_id, "content": content or [{"json": {}}]}
        if result.is_error:
            native["status"] = "error"
        return {"toolResult": native}


def _marker_of(block: Text | Attachment | ToolCall | ToolResult) -> Mapping[str, Any] | None:
    """No point stands inside a result: of one that is marked there, it stands behind."""
    if block.cache_control or not isinstance(block, ToolResult):
        return block.cache_control
    return next((part.cache_control for part in reversed(block.content) if part.cache_control), None)


def is_native(part: Mapping[str, Any]) -> bool:
    """Its `type`, which the wire format wants of every part, is its name. Other vendors have documents of that form,
    but for the `source`."""
    kind = part.get("type")
    if kind == "document":
        return isinstance(part.get(kind), Mapping) and "source" in part[kind]
    return kind in NATIVE_PARTS and kind in part


def _in_place(
    thoughts: list[tuple[int, list[NativeBlock]]], others: list[list[NativeBlock]]
) -> list[list[NativeBlock]]:
    """Thoughts where the model had them: a signed one must not be moved (see `shapes.reasoning_detail`). None stands
    last, where Claude refuses it: an answer that was cut off may end so."""
    placed: list[list[NativeBlock]] = []
    waiting = list(reversed(others))
    for index, thought in thoughts:
        while len(placed) < index and waiting:
            placed.append(waiting.pop())
        if not waiting:
            break
        placed.append(thought)
    return placed + waiting[::-1]


def tool_use_id(call_id: str) -> str:
    """Any client's or vendor's id within `[a-zA-Z0-9_.:-]{1,64}`; the same id gives the same."""
    clean = _NOT_IN_IDS.sub("_", call_id)
    if clean == call_id and 0 < len(call_id) <= _ID_LENGTH:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:24]}"


def redacted_bytes(data: str, reasoning_format: str) -> bytes:
    """Returns the bytes that `data` in a history stands for. It is the inverse of `redacted_data` and makes no sense of
    any other text."""
    if reasoning_format == CLAUDE_FORMAT:
        return data.encode("latin-1", "replace")
    try:
        return base64.b64decode(data)
    except ValueError:
        return b""


def redacted_data(content: bytes, reasoning_format: str) -> str:
    """Returns encrypted reasoning as text: for Claude the text that Anthropic's own API shows, so that a history serves
    both, for other vendors base64."""
    if reasoning_format == CLAUDE_FORMAT:
        return content.decode("latin-1")
    return base64.b64encode(content).decode()


def _strip_prefill(messages: list[dict[str, Any]]) -> None:
    """Claude refuses a last assistant message that ends in white space."""
    last = messages[-1]
    if last["role"] == "assistant" and "text" in last["content"][-1]:
        last["content"][-1] = {"text": last["content"][-1]["text"].rstrip()}
