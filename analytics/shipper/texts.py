"""Extracts the plain text of a request and its answer, for search and previews. Never fails, whatever the bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

# Longer texts are cut: an index over megabytes of pasted data finds everything and therefore nothing.
MAX_CHARACTERS = 1_000_000


class Message(msgspec.Struct):
    role: Any = None
    content: Any = None
    refusal: Any = None
    tool_calls: Any = None


class _Choice(msgspec.Struct):
    message: Message


class _Request(msgspec.Struct):
    messages: list[Message]


class _Response(msgspec.Struct):
    choices: list[_Choice]


# A decoder that makes objects of the fields alone that are read takes half the time.
_decode_request = msgspec.json.Decoder(_Request).decode
_decode_response = msgspec.json.Decoder(_Response).decode
_decode_any = msgspec.json.Decoder().decode
_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def prompt_text(request: bytes) -> bytes:
    return _utf8("\n".join(map(line_of, _messages_of_request(request))))


def line_of(message: Message) -> str:
    return f"{_role(message)}: {_message_text(message)}"


def completion_text(response: bytes) -> bytes:
    return _utf8("\n".join([text for one in _messages_of_response(response) if (text := _message_text(one))]))


def _messages_of_request(request: bytes) -> list[Message]:
    if not request:
        return []
    try:
        return _decode_request(request).messages
    except _DECODE_ERRORS:
        body = _decode_leniently(request)
    messages = body.get("messages") if isinstance(body, dict) else None
    return [_to_message(one) for one in messages] if isinstance(messages, list) else []


def _messages_of_response(response: bytes) -> list[Message]:
    if not response:
        return []
    try:
        return [choice.message for choice in _decode_response(response).choices]
    except _DECODE_ERRORS:
        body = _decode_leniently(response)
    choices = body.get("choices") if isinstance(body, dict) else None
    found = choices if isinstance(choices, list) else []
    return [_to_message(choice.get("message")) for choice in found if isinstance(choice, dict)]


def _decode_leniently(content: bytes) -> Any:
    try:
        return _decode_any(content)
    except _DECODE_ERRORS:
        pass
    # The standard library also takes lone surrogates and NaN, which clients do send.
    try:
        return json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _to_message(value: Any) -> Message:
    if not isinstance(value, dict):
        return Message()
    return Message(**{name: value.get(name) for name in Message.__struct_fields__})


def _utf8(text: str) -> bytes:
    # A lone surrogate has no UTF-8 form, and becomes a question mark.
    return text[:MAX_CHARACTERS].encode("utf-8", "replace")


def _role(message: Message) -> str:
    return message.role if isinstance(message.role, str) else "unknown"


def _message_text(message: Message) -> str:
    if isinstance(message.content, str) and message.refusal is None and message.tool_calls is None:
        return message.content
    refusal = [message.refusal] if isinstance(message.refusal, str) else []
    return " ".join([*_content_texts(message.content), *refusal, *_tool_calls(message.tool_calls)])


def _content_texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield part
            elif isinstance(part, dict):
                yield _part_text(part)


def _part_text(part: dict[Any, Any]) -> str:
    text = part.get("text")
    if isinstance(text, str):
        return text
    kind = part.get("type")
    return f"[{kind.removesuffix('_url')}]" if isinstance(kind, str) else ""


def _tool_calls(calls: Any) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield f"{function.get('name')}({function.get('arguments')})"
