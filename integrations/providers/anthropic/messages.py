from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from integrations.providers.anthropic.history import CALL_FIELDS, rebuild
from integrations.providers.anthropic.media import attachment_block
from integrations.providers.anthropic.models import Rules
from integrations.providers.anthropic.native import is_block, is_native, native_block, uses_files
from integrations.providers.base import ChatRequest, Media
from integrations.providers.common.claude import CLAUDE
from integrations.providers.common.conversation import (
    Attachment,
    Block,
    Conversation,
    Native,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    in_place,
    read_conversation,
    with_distinct_ids,
)
from integrations.providers.common.instructions import as_user, behind_user, marked
from integrations.providers.common.parameters import Mapped

# The ids of Claude's tool calls have letters, digits, `_` and `-` (https://docs.anthropic.com/en/api/messages); other
# vendors' ids may contain dots and colons.
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
# The vendor's beta accepts `clear_at` and `output_config` on a message of role system. They are left out, since the
# gateway may move the message.
_INSTRUCTION_FIELDS = ("clear_at", "output_config")
_THOUGHTS = ("thinking", "redacted_thinking")

Json = dict[str, Any]


@dataclass(slots=True)
class Messages:
    """The translated conversation. `files`: a block names a file uploaded to the vendor. `system_as_user`: the request
    had instructions only."""

    system: str | list[Json]
    messages: list[Json]
    files: bool = False
    system_as_user: bool = False

    def continues_without_thinking(self) -> bool:
        if len(self.messages) < 2 or not _holds(self.messages[-1], "tool_result"):
            return False
        call = self.messages[-2]
        return _holds(call, "tool_use") and call["content"][0]["type"] not in _THOUGHTS


def read_messages(request: ChatRequest, rules: Rules, mapped: Mapped) -> Messages:
    """`mapped` collects the parts without a place there. Raises UnsupportedParameterError for parts Claude cannot
    take.
    """
    plain = _plain(request.fields["messages"])
    if plain is not None:
        return plain
    # On a fallback from another vendor an id in OpenAI's form names a file that the other vendor holds.
    native = is_block if request.crosses_vendor else is_native
    read = read_conversation(request.fields, native=native, keep_places=True, rebuild=rebuild)
    placed = read if rules.instructions_in_place else as_user(read)
    conversation = with_distinct_ids(placed, _id)  # The API refuses repeated ids: "`tool_use` ids must be unique".
    _warn_about_dropped(mapped, conversation)
    # A turn without any remaining block does not separate its neighbours.
    written = [(turn.role, _blocks(turn, request.media)) for turn in conversation.turns]
    turns = behind_user(written, _marked_instruction)
    for role, blocks in turns:
        if role == "user":
            # Results of tools have to come first:
            # https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
            blocks.sort(key=lambda block: block["type"] != "tool_result")
    files = any(uses_files(block) for _, blocks in turns for block in blocks)
    messages: list[Json] = [{"role": role, "content": _short(blocks)} for role, blocks in turns]
    _strip_prefill(messages)
    system = [_text(text) for text in conversation.system if text.text.strip()]
    if not messages and system:
        # The API requires a message, while OpenAI's models accept a request with instructions only.
        return Messages("", [{"role": "user", "content": _short(system)}], system_as_user=True)
    return Messages(_short(system), messages, files)


def _marked_instruction(block: Json) -> Json:
    return {**block, "text": marked(block["text"])}


def _warn_about_dropped(mapped: Mapped, conversation: Conversation) -> None:
    mapped.drop_names()
    for name in _INSTRUCTION_FIELDS:
        if any(message.get(name) is not None for message in mapped.fields["messages"]):
            mapped.drop(f"messages.{name}", "instructions are sent without it")
    if conversation.details():
        mapped.drop("messages.image_url.detail")


def _plain(messages: Sequence[Mapping[str, Any]]) -> Messages | None:
    """A fast path for the most common form: one system text at most, then alternating texts, the user's last; else
    None."""
    system, turns, last = "", [], ""
    for message in messages:
        role, content = message["role"], message.get("content")
        if len(message) != 2 or role == last or not isinstance(content, str) or not content or content.isspace():
            return None
        if role in ("user", "assistant"):
            turns.append(dict(message))
        elif role == "system" and not last:
            system = content
        else:
            return None
        last = role
    return Messages(system, turns) if last == "user" else None


def _blocks(turn: Turn, media: Mapping[str, Media]) -> list[Json]:
    if turn.role == "assistant" and any(isinstance(part, Reasoning) for part in turn.blocks):
        return _with_thoughts(turn, media)
    return [block for part in turn.blocks if (block := _block(part, media)) is not None]


def _with_thoughts(turn: Turn, media: Mapping[str, Media]) -> list[Json]:
    """Puts thinking blocks at their original places, message by message (see `response.reasoning_detail`)."""
    done: list[Json] = []
    thoughts: list[tuple[int, Json]] = []
    others: list[Json] = []
    for part in turn.blocks:
        block = _block(part, media)
        if block is None:
            continue
        if isinstance(part, Reasoning):
            if others:  # Reasoning comes first in a message, so a new message begins here.
                done += in_place(thoughts, others)
                thoughts, others = [], []
            thoughts.append((part.index or 0, block))
        else:
            others.append(block)
    return done + in_place(thoughts, others) if others else done


def _block(part: Block, media: Mapping[str, Media]) -> Json | None:
    """None for parts that cannot be sent: blank text, which the vendor refuses, and another vendor's reasoning."""
    match part:
        case Text():
            return _text(part) if part.text.strip() else None
        case Attachment():
            return _attachment(part, media)
        case ToolCall():
            call = {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments_object()}
            call |= {name: part.extra[name] for name in CALL_FIELDS if name in part.extra}
            return _marked(call, part.cache_control)
        case ToolResult():
            return _result(part, media)
    return _thought(part)


def _text(part: Text) -> Json:
    return _marked({"type": "text", "text": part.text}, part.cache_control)


def _attachment(part: Attachment, media: Mapping[str, Media]) -> Json:
    if isinstance(part, Native):
        return _marked(dict(native_block(part.part)), part.cache_control)
    return _marked(attachment_block(part, media), part.cache_control)


def _result(result: ToolResult, media: Mapping[str, Media]) -> Json:
    content = [made for part in result.content if (made := _block(part, media)) is not None]
    if len(content) == 1 and content[0].get("cache_control") == result.cache_control:
        content[0].pop("cache_control", None)  # The message's own cache marker is already on the result.
    block: Json = {"type": "tool_result", "tool_use_id": result.call_id}
    if content:
        block["content"] = _short(content)
    if result.is_error:
        block["is_error"] = True
    return _marked(block, result.cache_control)


def _thought(part: Reasoning) -> Json | None:
    """None for unsigned thinking, which the vendor refuses, and for another vendor's signature, which it cannot
    check.
    """
    if part.format != CLAUDE:
        return None
    if part.data:
        return {"type": "redacted_thinking", "data": part.data}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature} if part.signature else None


def _marked(block: Json, cache_control: Mapping[str, Any] | None) -> Json:
    if cache_control:
        block["cache_control"] = cache_control
    return block


def _short(blocks: list[Json]) -> str | list[Json]:
    if not blocks:
        return ""
    text = blocks[0].get("text")
    return text if len(blocks) == 1 and isinstance(text, str) and len(blocks[0]) == 2 else blocks


def _strip_prefill(messages: list[Json]) -> None:
    """The API refuses a prefilled answer that ends with white space."""
    if not messages or messages[-1]["role"] != "assistant":
        return
    content = messages[-1]["content"]
    if isinstance(content, str):
        messages[-1]["content"] = content.rstrip()
    elif content[-1]["type"] == "text":
        content[-1] = {**content[-1], "text": content[-1]["text"].rstrip()}


def _id(call_id: str) -> str:
    return call_id if call_id.replace("_", "").replace("-", "").isalnum() and call_id.isascii() else _safe(call_id)


def _safe(call_id: str) -> str:
    return _NOT_IN_IDS.sub("_", call_id) or "call"


def _holds(message: Json, kind: str) -> bool:
    content: str | Sequence[Json] = message["content"]
    return not isinstance(content, str) and any(block["type"] == kind for block in content)
