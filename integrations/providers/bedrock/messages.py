"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html: roles alternate, the user begins,
and no text may be blank."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from integrations.providers.bedrock.media import PROVIDER, MediaBlocks
from integrations.providers.bedrock.models import Model
from integrations.providers.common.claude import CLAUDE
from integrations.providers.common.conversation import (
    Attachment,
    Conversation,
    Native,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    in_place,
)
from integrations.providers.errors import UnsupportedParameterError

NativeBlock = dict[str, Any]

# Guard contents, search results and cache points in Converse's own form pass unchanged; `json` passes in tool results
# only.
NATIVE_PARTS = ("guardContent", "searchResult", "cachePoint", "json")

# Converse requires the user's turn first, so a short text of the user stands before a conversation that begins with the
# assistant.
_BEGIN = "(The conversation begins.)"
_ID_LENGTH = 64
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_.:-]")


@dataclass(slots=True)
class MessageWriter:
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

    def cache_point(self, marker: Mapping[str, Any] | None) -> list[NativeBlock]:
        """Returns the cache point that stands behind the block with Anthropic's marker; nothing for models without a
        cache, which refuse it."""
        if not marker or not self.model.caches_messages:
            return []
        point: dict[str, Any] = {"type": "default"}
        if marker.get("ttl") and not self.model.is_nova:
            point["ttl"] = marker["ttl"]
        return [{"cachePoint": point}]

    def _turn(self, turn: Turn) -> list[NativeBlock]:
        """The turn's blocks in groups that stay together: a cache point must follow the block that it marks."""
        thoughts: list[tuple[int, list[NativeBlock]]] = []
        others: list[list[NativeBlock]] = []
        placed: list[list[NativeBlock]] = []
        was_text = False
        for block in turn.blocks:
            if isinstance(block, Reasoning):
                if others:  # Reasoning comes first in a message, so a new message begins here.
                    placed += in_place(thoughts, others)
                    thoughts, others = [], []
                thoughts += [(block.index or 0, [thought]) for thought in self._reasoning(block)]
                was_text = False
            elif written := self._written(block):
                group = written + self.cache_point(_marker_of(block))
                is_text = turn.role == "assistant" and isinstance(block, (Text, Native))
                if is_text and was_text:  # Consecutive texts of an answer count as one block in the places of thoughts.
                    others[-1] += group
                else:
                    others.append(group)
                was_text = is_text
        placed += in_place(thoughts, others)
        if turn.role == "user":
            # Claude requires results first:
            # https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
            placed.sort(key=lambda group: "toolResult" not in group[0])
        return self._with_text([block for group in placed for block in group])

    def _with_text(self, blocks: list[NativeBlock]) -> list[NativeBlock]:
        documents = [str(block["document"].get("name") or "Document") for block in blocks if "document" in block]
        if documents and not any("text" in block for block in blocks):
            # Converse requires a text block beside a document (API_runtime_DocumentBlock).
            blocks.append({"text": documents[0]})
        return blocks

    def _written(self, block: Text | Attachment | ToolCall | ToolResult) -> list[NativeBlock]:
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
        """Only thoughts that this dialect made for such a model; Claude refuses unsigned ones."""
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
        """Raises UnsupportedParameterError for audio, the only kind of file that a result cannot hold."""
        content = [
            {"text": part.text} if isinstance(part, Text) else self._attachment(part)
            for part in result.content
            if not isinstance(part, Text) or part.text.strip()
        ]
        if any("audio" in block for block in content):
            raise UnsupportedParameterError("messages", "Bedrock takes no sound in a tool's result", provider=PROVIDER)
        # Converse refuses a blank text in a result too, and accepts an empty object.
        native: dict[str, Any] = {"toolUseId": result.call_id, "content": content or [{"json": {}}]}
        if result.is_error:
            native["status"] = "error"
        return {"toolResult": native}


def _marker_of(block: Text | Attachment | ToolCall | ToolResult) -> Mapping[str, Any] | None:
    """A cache point cannot stand inside a result, so a marked part's point follows the result."""
    if block.cache_control or not isinstance(block, ToolResult):
        return block.cache_control
    return next((part.cache_control for part in reversed(block.content) if part.cache_control), None)


def is_native(part: Mapping[str, Any]) -> bool:
    """Whether a part has Converse's own form: its `type`, which the wire format requires, names its only field. Other
    vendors' documents look alike, but have no `source`."""
    kind = part.get("type")
    if kind == "document":
        return isinstance(part.get(kind), Mapping) and "source" in part[kind]
    return kind in NATIVE_PARTS and kind in part


def tool_use_id(call_id: str) -> str:
    """Maps an id into `[a-zA-Z0-9_.:-]{1,64}`, always to the same result."""
    clean = _NOT_IN_IDS.sub("_", call_id)
    if clean == call_id and 0 < len(call_id) <= _ID_LENGTH:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:24]}"


def redacted_bytes(data: str, reasoning_format: str) -> bytes:
    """The inverse of `redacted_data`; any other text gives meaningless bytes."""
    if reasoning_format == CLAUDE:
        return data.encode("latin-1", "replace")
    try:
        return base64.b64decode(data)
    except ValueError:
        return b""


def redacted_data(content: bytes, reasoning_format: str) -> str:
    """Encrypted reasoning as text. For Claude it is the text of Anthropic's API, so that a history works with both; for
    other vendors it is base64."""
    if reasoning_format == CLAUDE:
        return content.decode("latin-1")
    return base64.b64encode(content).decode()


def _strip_prefill(messages: list[dict[str, Any]]) -> None:
    """Claude refuses a prefilled answer that ends with white space."""
    last = messages[-1]
    if last["role"] == "assistant" and "text" in last["content"][-1]:
        last["content"][-1] = {"text": last["content"][-1]["text"].rstrip()}
