"""Translates a request's messages.

Tool results become separate messages before the user's text: chat completions, like the Messages API, want them right
after the calls.

For an answer a chat completion has one place for the text and, after it, one for the calls. An assistant message with
anything else, or in another order, also carries its blocks as `provider_specific_fields.content`, from which the
adapter of Anthropic restores it (`integrations/providers/anthropic/history.py`); others get the texts and the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES, check_content_size
from gateway.protocol.wire import MAX_MESSAGES
from gateway.surfaces.checks import (
    Json,
    as_object,
    invalid,
    missing,
    optional_flag,
    optional_text,
    required_name,
    required_object,
    required_text,
)
from gateway.surfaces.messages.blocks import content_of, marked, part_of, text_part, type_of
from gateway.surfaces.messages.foreign import (
    is_foreign,
    is_foreign_search,
    is_foreign_thought,
    opened,
    own_citations,
)
from integrations.providers.common.claude import CLAUDE

_encode = msgspec.json.Encoder().encode


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


# The vendor's beta takes these fields on an instruction in mid-conversation.
_OF_INSTRUCTIONS = ("clear_at", "output_config")
# A character of a text takes at most six bytes in JSON, and the rest of a small part some hundred.
_BYTES_OF_CHARACTER, _BYTES_OF_PART = 6, 200
_PLAIN_CHARACTERS = MAX_MESSAGE_BYTES // _BYTES_OF_CHARACTER
_SPEAKERS = ("user", "assistant")
# Claude Code begins its instructions with a line for Anthropic's accounting, which differs between conversations: other
# vendors would read it as an instruction, and their prompt caches would begin with it.
_ATTRIBUTION = "x-anthropic-billing-header:"
_SIZED = frozenset({"text", "image_url", "document_url"})


def read_messages(messages: Any, untranslatable: list[str]) -> list[Json]:
    if messages is None:
        raise missing("messages")
    if not isinstance(messages, list):
        raise invalid("messages", "expected a list")
    if not messages:
        raise ValidationError("messages: at least one message is required", code="empty_messages")
    translated: list[Json] = []
    for index, message in enumerate(messages):
        if (plain := _plain(message)) is not None:
            translated.append(plain)
            continue
        place = f"messages[{index}]"
        made = _message(as_object(message, place), place, untranslatable)
        _check_sizes(made, f"{place}.content")
        translated += made
    if len(translated) > MAX_MESSAGES:
        raise ValidationError(
            f"messages: {len(translated)} messages, each tool_result being one, at most {MAX_MESSAGES} are allowed",
            code="too_many_messages",
        )
    return translated


def read_system(system: Any) -> list[Json]:
    content = _texts(system, "system")
    return [{"role": "system", "content": content}] if content else []


def _plain(message: Any) -> Json | None:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, str) or len(content) > _PLAIN_CHARACTERS or message.get("role") not in _SPEAKERS:
        return None
    return {"role": message["role"], "content": content}


def _message(message: Json, place: str, untranslatable: list[str]) -> list[Json]:
    role = required_name(message, "role", place)
    content = message.get("content")
    if content is None:
        raise missing(f"{place}.content")
    if not isinstance(content, str | list):
        raise invalid(f"{place}.content", "expected a string or a list of content blocks")
    match role:
        case "user":
            return _of_user(content, place, untranslatable)
        case "assistant":
            return [assistant_message(content, place)]
        case "system":
            extra = {name: message[name] for name in _OF_INSTRUCTIONS if message.get(name) is not None}
            return [{"role": "system", "content": _texts(content, f"{place}.content"), **extra}]
    raise invalid(f"{place}.role", "expected user, assistant or system")


def _of_user(content: str | list[Any], place: str, untranslatable: list[str]) -> list[Json]:
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    results, parts = [], []
    for index, block in enumerate(content):
        where = f"{place}.content[{index}]"
        if type_of(block, where) == "tool_result":
            results.append(_result(block, where, untranslatable))
        else:
            parts.append(part_of(block, where, untranslatable))
    return [*results, {"role": "user", "content": content_of(parts)}] if parts or not results else results


def _result(block: Json, place: str, untranslatable: list[str]) -> Json:
    call_id = required_name(block, "tool_use_id", place)
    content = block.get("content")
    if content is not None and not isinstance(content, str | list):
        raise invalid(f"{place}.content", "expected a string or a list of content blocks")
    if isinstance(content, list):
        where = f"{place}.content"
        content = content_of([part_of(part, f"{where}[{n}]", untranslatable) for n, part in enumerate(content)])
    made: Json = {"role": "tool", "tool_call_id": call_id, "content": content or ""}
    if optional_flag(block, "is_error", place):
        made["is_error"] = True
    return marked(made, block, place)


def _texts(content: Any, place: str) -> str | list[Json]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(place, "expected a string or a list of text blocks")
    parts = []
    for index, block in enumerate(content):
        where = f"{place}[{index}]"
        if type_of(block, where) != "text":
            raise invalid(f"{where}.type", "expected text")
        part = text_part(block, where)
        if not part["text"].startswith(_ATTRIBUTION):
            parts.append(part)
    return content_of(parts)


def _check_sizes(made: list[Json], field: str) -> None:
    for message in made:
        if _max_bytes(message["content"]) > MAX_MESSAGE_BYTES:
            check_content_size(field, _encode(message["content"]))


def _max_bytes(content: str | list[Json] | None) -> int:
    if content is None or isinstance(content, str):
        return len(content or "") * _BYTES_OF_CHARACTER
    size = 0
    for part in content:
        if part["type"] not in _SIZED:
            return MAX_MESSAGE_BYTES + 1
        size += len(part.get("text", "")) * _BYTES_OF_CHARACTER + _BYTES_OF_PART
    return size
