"""Extracts the plain text of a request and its answer, for search and previews, from any bytes without failing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

# Longer texts are cut: an index over megabytes of pasted data finds everything and therefore nothing.
MAX_CHARACTERS = 1_000_000

_decoder = msgspec.json.Decoder()


def prompt_text(request: bytes) -> str:
    """Returns the messages of a chat-completion request, one after the other, each marked with its role."""
    body = _decode(request)
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        return ""
    return _clean("\n".join(f"{_role(message)}: {_message_text(message)}" for message in messages))


def completion_text(response: bytes) -> str:
    """Returns the model's text in a chat completion; several choices follow each other."""
    body = _decode(response)
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list):
        return ""
    messages = (choice.get("message") for choice in choices if isinstance(choice, dict))
    return _clean("\n".join(text for message in messages if (text := _message_text(message))))


def _decode(content: bytes) -> Any:
    if not content:
        return None
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_leniently(content)


def _decode_leniently(content: bytes) -> Any:
    # The standard library also takes lone surrogates and NaN, which clients do send.
    try:
        return json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _clean(text: str) -> str:
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else "unknown"


def _message_text(message: Any) -> str:
    if not isinstance(message, dict):
        return ""
    return " ".join([*_content_texts(message.get("content")), *_refusal(message), *_tool_calls(message)])


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


def _refusal(message: dict[Any, Any]) -> Iterator[str]:
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        yield refusal


def _tool_calls(message: dict[Any, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield f"{function.get('name')}({function.get('arguments')})"
