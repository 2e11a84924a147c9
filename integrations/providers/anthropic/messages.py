"""Converts the conversation to `system` and `messages` of the Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from integrations.providers.anthropic.history import CALL_FIELDS, rebuild
from integrations.providers.anthropic.media import attachment_block
from integrations.providers.anthropic.models import Rules
from integrations.providers.anthropic.native import is_block, is_native, native_block, uses_files
from integrations.providers.anthropic.response import FORMAT
from integrations.providers.base import ChatRequest, Media
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
    read_conversation,
    with_distinct_ids,
)
from integrations.providers.common.instructions import as_user, behind_user, marked
from integrations.providers.common.parameters import Mapped

# The ids of Claude's tool calls have letters, digits, `_` and `-` (https://docs.anthropic.com/en/api/messages); other
# vendors' ids may contain dots and colons.
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
# In results of tools and functions `name` is the tool's name, which the call already gives.
_RESULT_ROLES = ("tool", "function")
_DEFAULT_DETAIL = ("", "auto")
# The vendor's beta accepts `clear_at` and `output_config` on a message of role system. They are left out, since the
# gateway may move the message.
_INSTRUCTION_FIELDS = ("clear_at", "output_config")
_THOUGHTS = ("thinking", "redacted_thinking")

Json = dict[str, Any]


@dataclass(slots=True)
class Messages:
    """The translated conversation. `files` means that a block names a file uploaded to the vendor; `system_as_user`
    means that the request had instructions only."""

    system: str | list[Json]
    messages: list[Json]
    files: bool = False
    system_as_user: bool = False

    def continues_without_thinking(self) -> bool:
        """Returns True when the model is in the middle of a tool loop whose call came without thinking of its own."""
        if len(self.messages) < 2 or not _holds(self.messages[-1], "tool_result"):
            return False
        call = self.messages[-2]
        return _holds(call, "tool_use") and call["content"][0]["type"] not in _THOUGHTS


def read_messages(request: ChatRequest, rules: Rules, mapped: Mapped) -> Messages:
    """Returns the translated messages. `mapped` collects the parts that have no place there. Raises
    UnsupportedParameterError for parts that Claude cannot take."""
    plain = _plain(request.fields["messages"])
    if plain is not None:
        return plain
    # On a fallback from another vendor an id in OpenAI's form names a file that the other vendor holds.
    native = is_block if request.crosses_vendor else is_native
    read = read_conversation(request.fields, native=native, keep_places=True, rebuild=rebuild)
    placed = behind_user(read) if rules.instructions_in_place else as_user(read)
    conversation = with_distinct_ids(placed, _id)  # The API refuses repeated ids: "`tool_use` ids must be unique".
    _warn_about_dropped(mapped, conversation)
    turns = _role_blocks(conversation, request.media)
    files = any(uses_files(block) for _, blocks in turns for block in blocks)
    messages: list[Json] = [{"role": role, "content": _short(blocks)} for role, blocks in turns]
    _strip_prefill(messages)
    system = [_text(text) for text in conversation.system if text.text.strip()]
    if not messages and system:
        # The API requires a message, while OpenAI's models accept a request with instructions only.
        return Messages("", [{"role": "user", "content": _short(system)}], system_as_user=True)
    return Messages(_short(system), messages, files)


def _role_blocks(conversation: Conversation, media: Mapping[str, Media]) -> list[tuple[str, list[Json]]]:
    """Returns roles with blocks. A turn without any remaining block does not separate its neighbours. An instruction
    between two turns of the user goes behind the second one, and an instruction behind an answer becomes the user's."""
    turns: list[tuple[str, list[Json]]] = []
    waiting: list[Json] = []
    for turn in conversation.turns:
        blocks = _blocks(turn, media)
        if turn.role == "system":
            waiting += blocks
            continue
        if blocks and turn.role == "assistant":
            _instruct(turns, waiting)
            waiting = []
        _append(turns, turn.role, blocks)
    _instruct(turns, waiting)
    return turns


def _append(turns: list[tuple[str, list[Json]]], role: str, blocks: list[Json]) -> None:
    if turns and turns[-1][0] == role:
        turns[-1][1].extend(blocks)
    elif blocks:
        turns.append((role, blocks))


def _instruct(turns: list[tuple[str, list[Json]]], instructions: list[Json]) -> None:
    if turns and turns[-1][0] == "user":
        _append(turns, "system", instructions)
    else:
        _append(turns, "user", [{**block, "text": marked(block["text"])} for block in instructions])


def _warn_about_dropped(mapped: Mapped, conversation: Conversation) -> None:
    if any(message.get("name") and message["role"] not in _RESULT_ROLES for message in mapped.fields["messages"]):
        mapped.drop("messages.name")
    for name in _INSTRUCTION_FIELDS:
        if any(message.get(name) is not None for message in mapped.fields["messages"]):
            mapped.drop(f"messages.{name}", "instructions are sent without it")
    if any(attachment.detail not in _DEFAULT_DETAIL for attachment in conversation.attachments()):
        mapped.drop("messages.image_url.detail")


def _plain(messages: Sequence[Mapping[str, Any]]) -> Messages | None:
    """Returns the messages of the most common form of conversation: at most one system text, then texts in alternating
    turns, the user's last. None for any other form."""
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
    blocks = [block for part in turn.blocks if (block := _block(part, media)) is not None]
    if turn.role == "user" and any(block["type"] == "tool_result" for block in blocks):
        # Results of tools have to come first:
        # https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
        blocks.sort(key=lambda block: block["type"] != "tool_result")
    return blocks


def _with_thoughts(turn: Turn, media: Mapping[str, Media]) -> list[Json]:
    """Returns the turn's blocks with thinking blocks at their original places (see `response.reasoning_detail`),
    message by message."""
    done: list[Json] = []
    thoughts: list[tuple[int, Json]] = []
    others: list[Json] = []
    for part in turn.blocks:
        block = _block(part, media)
        if block is None:
            continue
        if isinstance(part, Reasoning):
            if others:  # Reasoning comes first in a message, so a new message begins here.
                done += _in_place(thoughts, others)
                thoughts, others = [], []
            thoughts.append((part.index or 0, block))
        else:
            others.append(block)
    return done + _in_place(thoughts, others) if others else done


def _in_place(thoughts: list[tuple[int, Json]], others: list[Json]) -> list[Json]:
    """Returns the blocks merged by their places. No thought comes last, where the vendor refuses it; an answer that was
    cut off may end with one."""
    placed: list[Json] = []
    waiting = list(reversed(others))
    for index, thought in thoughts:
        while len(placed) < index and waiting:
            placed.append(waiting.pop())
        if not waiting:
            break
        placed.append(thought)
    return placed + waiting[::-1]


def _block(part: Block, media: Mapping[str, Media]) -> Json | None:
    """Returns the part as a content block; None for a part that cannot be sent: blank text, which the vendor refuses,
    and reasoning of another vendor."""
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
    """Returns the thinking block, None for unsigned thinking, which the vendor refuses, and for another vendor's
    signature, which it cannot check."""
    if part.format != FORMAT:
        return None
    if part.data:
        return {"type": "redacted_thinking", "data": part.data}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature} if part.signature else None


def _marked(block: Json, cache_control: Mapping[str, Any] | None) -> Json:
    if cache_control:
        block["cache_control"] = cache_control
    return block


def _short(blocks: list[Json]) -> str | list[Json]:
    """Returns a single plain text as a string, other blocks as a list."""
    if not blocks:
        return ""
    text = blocks[0].get("text")
    return text if len(blocks) == 1 and isinstance(text, str) and len(blocks[0]) == 2 else blocks


def _strip_prefill(messages: list[Json]) -> None:
    """Removes white space from the end of a last assistant message: the API refuses an answer's beginning that ends
    with it."""
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
