"""Translates the messages of a request to those of a chat completion.

The results of tools become messages of their own, in front of what the user says beside them: chat completions, like
the Messages API, want them right behind the calls.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES, check_content_size
from gateway.protocol.wire import MAX_MESSAGES
from gateway.surfaces.checks import (
    as_object,
    invalid,
    missing,
    optional_flag,
    required_name,
)
from gateway.surfaces.messages.assistant import assistant_message
from gateway.surfaces.messages.blocks import content_of, marked, part_of, text_part, type_of

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

_encode = msgspec.json.Encoder().encode

Json = dict[str, Any]


def read_messages(messages: Any, untranslatable: list[str]) -> list[Json]:
    """Returns the messages. `untranslatable` collects the blocks that a chat completion cannot express. Raises
    ValidationError."""
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
    """Returns the message with the instructions, none when they hold nothing. Raises ValidationError."""
    content = _texts(system, "system")
    return [{"role": "system", "content": content}] if content else []


def _plain(message: Any) -> Json | None:
    """Returns the message of a text that is the same in a chat completion, which most are; None for any other message,
    and for one that may be too large."""
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
    """Returns the content of an instruction, which is text only."""
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
    """Raises ValidationError, which names the client's `field`, for a message above the gateway's limit. Only a message
    that may be too large is measured."""
    for message in made:
        if _max_bytes(message["content"]) > MAX_MESSAGE_BYTES:
            check_content_size(field, _encode(message["content"]))


def _max_bytes(content: str | list[Json] | None) -> int:
    """Returns a bound for the bytes of a content without the files in it."""
    if content is None or isinstance(content, str):
        return len(content or "") * _BYTES_OF_CHARACTER
    size = 0
    for part in content:
        if part["type"] not in _SIZED:
            return MAX_MESSAGE_BYTES + 1
        size += len(part.get("text", "")) * _BYTES_OF_CHARACTER + _BYTES_OF_PART
    return size
