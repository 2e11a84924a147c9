from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from gateway.protocol.marked_documents import Delimiters, is_marked, pieces_of


class Speaker(StrEnum):
    OPERATOR = "operator"  # The operator writes system and developer messages, and managed prompts.
    USER = "user"
    ASSISTANT = "assistant"
    UNTRUSTED = "untrusted"  # Results of tools and documents are untrusted.
    VARIABLE = "variable"  # A request puts values into the variables of a managed prompt.


class Segment(NamedTuple):
    speaker: Speaker
    text: str


_SPEAKERS = {
    "system": Speaker.OPERATOR,
    "developer": Speaker.OPERATOR,
    "user": Speaker.USER,
    "assistant": Speaker.ASSISTANT,
    "tool": Speaker.UNTRUSTED,
    "function": Speaker.UNTRUSTED,
}
# These fields of messages and parts name things; no speaker's words stand in them.
_NOT_TEXT = frozenset(
    {"role", "type", "id", "tool_call_id", "cache_control", "detail", "format", "media_type", "file_id"}
)
_READ_SEPARATELY = frozenset({"content", "tool_calls", "function_call"})
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal", "thinking"})
_UNREADABLE_PARTS = frozenset({"image_url", "input_audio", "image", "audio", "input_image"})
_NOTHING: frozenset[str] = frozenset()
_MAX_NESTING = 100
# No words of anybody stand in these fields of a request, or they are read with the messages. Surfaces write the
# conversation in `input`, `system`, `instructions` and `prompt`.
_NO_TEXT_FIELDS = frozenset(
    {
        *("model", "models", "provider", "prompt_config", "prompt_variables", "prediction"),
        *("messages", "input", "system", "instructions", "documents", "query"),
        *("tool_choice", "function_call", "stream_options", "thinking", "reasoning", "reasoning_effort", "verbosity"),
        *("service_tier", "modalities", "logit_bias", "include", "truncation", "betas", "cache_control"),
    }
)
_TOOL_FIELDS = frozenset({"tools", "functions"})
# Stop sequences are words of the model, and often marks such as `<|im_end|>`, which are attacks in a user's message.
_STOP_FIELDS = frozenset({"stop", "stop_sequences"})


def text_segments(fields: Mapping[str, Any], delimiters: Delimiters = ()) -> Iterator[Segment]:
    for message in fields["messages"]:
        segments = _of_message(message)
        yield from _with_documents(segments, delimiters) if delimiters else segments
    prediction = fields.get("prediction")
    if prediction is not None:
        yield from _of_content(prediction.get("content") if isinstance(prediction, dict) else prediction, Speaker.USER)


def _with_documents(segments: Iterable[Segment], delimiters: Delimiters) -> Iterator[Segment]:
    for speaker, text in segments:
        pieces = pieces_of(text, delimiters) if speaker is Speaker.USER else []
        documents = [piece.text for piece in pieces if piece.is_document]
        if not documents:
            yield Segment(speaker, text)
            continue
        yield from (Segment(Speaker.UNTRUSTED, document) for document in documents)
        rest = "\n".join(piece.text for piece in pieces if not piece.is_document)
        if rest:
            yield Segment(speaker, rest)


def field_segments(fields: Mapping[str, Any]) -> Iterator[Segment]:
    """Yields the texts beside the messages, each after its name.

    These are the user's name, metadata, stop sequences, tools, the response format, and all fields that pass through to
    providers.
    """
    texts: list[str] = []
    for name, value in fields.items():
        if name in _NO_TEXT_FIELDS or not isinstance(value, str | list | dict):
            continue
        if name in _TOOL_FIELDS and isinstance(value, list):
            # Weights of rules add up in a text, so each tool is one of its own.
            yield from (Segment(Speaker.USER, "\n".join(_lines(tool, "", skipped=_NOTHING))) for tool in value)
        elif name in _STOP_FIELDS:
            yield Segment(Speaker.ASSISTANT, "\n".join(_lines(value, name, skipped=_NOTHING)))
        elif name != "prompt" or isinstance(value, dict):
            texts += _lines(value, name, skipped=_NOTHING)
    if texts:
        yield Segment(Speaker.USER, "\n".join(texts))


def user_texts(fields: Mapping[str, Any]) -> Iterator[str]:
    for message in fields["messages"]:
        if message["role"] == "user":
            content = _of_content(message.get("content"), Speaker.USER)
            yield next((segment.text for segment in content if segment.speaker is Speaker.USER), "")


def variable_segments(values: Mapping[str, Any]) -> Iterator[Segment]:
    for value in values.values():
        yield from _of_value(value, Speaker.VARIABLE)


def _of_message(message: Mapping[str, Any]) -> Iterator[Segment]:
    speaker = _SPEAKERS[message["role"]]
    yield from _of_content(message.get("content"), speaker)
    for call in (*(message.get("tool_calls") or ()), message.get("function_call")):
        # The arguments of a call are JSON within a text, or a plain text.
        yield from _of_value(call, speaker)
    for key, value in message.items():
        if key not in _NOT_TEXT and key not in _READ_SEPARATELY:
            yield from _of_value(value, speaker)


def _of_content(content: Any, speaker: Speaker) -> Iterator[Segment]:
    if isinstance(content, str):
        yield Segment(speaker, readable(content))
    elif isinstance(content, list):
        yield from _of_parts(content, speaker)
    elif content is not None:
        yield from _of_value(content, speaker)


def _of_parts(parts: list[Any], speaker: Speaker) -> Iterator[Segment]:
    """Yields consecutive text parts joined with and without a line break: to the model they are one text.

    Parts that are marked as documents are untrusted, whoever sends them.
    """
    texts: dict[Speaker, list[str]] = {}
    for part in parts:
        if isinstance(part, str):
            texts.setdefault(speaker, []).append(part)
        elif isinstance(part, dict):
            text = _text_of(part)
            if text is not None:
                texts.setdefault(Speaker.UNTRUSTED if is_marked(part) else speaker, []).append(text)
            elif part.get("type") not in _UNREADABLE_PARTS:
                yield from _of_value(part, speaker if speaker is Speaker.OPERATOR else Speaker.UNTRUSTED)
    for owner, own in texts.items():
        yield Segment(owner, readable("\n".join(own)))
        if len(own) > 1:
            yield Segment(owner, readable("".join(own)))


def _text_of(part: Mapping[str, Any]) -> str | None:
    if part.get("type") not in _TEXT_PARTS:
        return None
    text = part.get("text", part.get("refusal", part.get("thinking")))
    return text if isinstance(text, str) else None


def _of_value(value: Any, speaker: Speaker) -> Iterator[Segment]:
    text = "\n".join(_lines(value, ""))
    if text:
        yield Segment(speaker, text)


def readable(text: str) -> str:
    r"""Returns the text as a model reads it: JSON may spell letters as `\u0041`, and has numbers without quotes."""
    if text[:1] not in "{[" or "\\" not in text:
        return text
    try:
        return "\n".join(_lines(msgspec.json.decode(text), ""))
    except (msgspec.DecodeError, RecursionError):
        return text


def _lines(value: Any, name: str, depth: int = 0, skipped: frozenset[str] = _NOT_TEXT) -> Iterator[str]:
    """Yields the leaves of a JSON tree, each after its name: `phone: 555 0100` says more than the number.

    Values of the names in `skipped` are left out.
    """
    if depth >= _MAX_NESTING:
        yield msgspec.json.encode(value).decode()
    elif isinstance(value, str):
        yield from _lines_of_text(value, name, depth, skipped)
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            if key not in skipped:
                yield from _lines(item, key, depth + 1, skipped)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _lines(item, name, depth + 1, skipped)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield _named(name, str(value))
    elif name:
        yield name


def _lines_of_text(value: str, name: str, depth: int, skipped: frozenset[str]) -> Iterator[str]:
    text = _decoded(value)
    nested = _nested(text)
    if nested is None:
        yield _named(name, text)
    else:
        yield from _lines(nested, name, depth + 1, skipped)


def _named(name: str, text: str) -> str:
    return f"{name}: {text}" if name else text


def _nested(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _decoded(text: str) -> str:
    if not text.startswith("data:"):
        return text
    head, _, content = text.partition(",")
    if not head.startswith(("data:text/", "data:application/json", "data:,")) and head != "data:":
        return ""
    if not head.endswith(";base64"):
        return content
    try:
        return base64.b64decode(content).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
