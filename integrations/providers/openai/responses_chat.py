"""Converts a response to a chat completion, for the client that sent one, the record, and the schema check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from integrations.providers.common.sse import EventParser, UnreadableStreamError
from integrations.providers.common.surrogates import lenient
from integrations.providers.openai.responses_request import encrypted_reasoning
from integrations.providers.openai.responses_shapes import (
    ENDS,
    calls_tools,
    chat_usage,
    decode_response,
    finish_reason,
)
from integrations.providers.openai.shapes import CHUNK, COMPLETION

Json = dict[str, Any]

_decode = lenient(msgspec.json.Decoder(Json).decode)
_encode = msgspec.json.Encoder().encode
_LAST = ENDS | {"response.failed"}
_ENCRYPTED = b'"encrypted_content"'
_CALLS = frozenset({"function_call", "custom_tool_call"})
_READ = _CALLS | {"message", "reasoning"}
PARAGRAPH = "\n\n"
"""Stands between two messages of one response, and between two thoughts."""
# The deltas of an item that did not end, with the type of the item's part that they belong to.
_PIECES = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
    "response.reasoning_summary_text.delta": "summary_text",
}


class Places:
    """Counts a chat completion's items as the vendor gets them back: all texts are one message."""

    __slots__ = ("_count", "_has_message")

    def __init__(self) -> None:
        self._count, self._has_message = 0, False

    def of(self, kind: object) -> int:
        place = self._count
        self._count += str(kind) in _READ and not (kind == "message" and self._has_message)
        self._has_message = self._has_message or kind == "message"
        return place


def chat_completion(answer: bytes, *, reasoning_format: str = "") -> bytes:
    """Empty bytes for an answer that cannot be read. Includes encrypted reasoning if `reasoning_format` names its
    format."""
    try:
        return _encode(_completion(_decode(answer), reasoning_format))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return b""


def chat_frames(events: bytes) -> bytes:
    """The completion of a stream, even a short one, as one framed chunk; empty bytes for unreadable events."""
    try:
        completion = _completion(_gathered(events))
    except (msgspec.DecodeError, UnicodeDecodeError, UnreadableStreamError):
        return b""
    choice = completion["choices"][0]
    choice["delta"] = choice.pop("message")
    return b"data: %b\n\n" % _encode({**completion, "object": CHUNK})


def without_reasoning(body: bytes) -> bytes:
    """Drops the model's encrypted reasoning; returns the same bytes if there is none."""
    if _ENCRYPTED not in body:
        return body
    fields = _decode(body)
    items = fields.get("input")
    if isinstance(items, list):
        fields["input"] = [item for item in items if not (isinstance(item, dict) and item.get("encrypted_content"))]
    return _encode(fields)


def _completion(response: Json, reasoning_format: str = "") -> Json:
    read = decode_response(_encode(response))
    items = [item for item in response.get("output") or () if isinstance(item, dict)]
    finish = finish_reason(read, called_tools=calls_tools(read.output))
    usage = {"usage": chat_usage(read.usage)} if read.usage else {}
    message = _message(items)
    if reasoning_format and (details := list(_details(items, reasoning_format))):
        message["reasoning_details"] = details
    return {
        "id": response.get("id") or "",
        "object": COMPLETION,
        "created": response.get("created_at") or 0,
        "model": response.get("model") or "",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **usage,
    }


def _message(items: list[Json]) -> Json:
    messages = [item for item in items if item.get("type") == "message"]
    texts = [text for item in messages if (text := text_of(item)) is not None]
    calls = [chat_call(item) for item in items if is_call(item)]
    message: Json = {"role": "assistant", "content": PARAGRAPH.join(filter(None, texts))}
    if not texts and (calls or messages):
        message["content"] = None
    if refusal := "".join(map(refusal_of, messages)):
        message["refusal"] = refusal
    if reasoning := PARAGRAPH.join(thought for item in items for thought in thoughts_of(item)):
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    if annotations := [one for item in messages for one in annotations_of(item)]:
        message["annotations"] = annotations
    if own := [item for item in items if is_own(item)]:
        message["provider_specific_fields"] = {"output": own}
    return message


def _details(items: list[Json], form: str) -> Iterable[Json]:
    places = Places()
    for item in items:
        place = places.of(item.get("type"))
        if item.get("type") == "reasoning" and (detail := encrypted_reasoning(item, place, form)) is not None:
            yield detail


def is_call(item: Mapping[str, Any]) -> bool:
    return str(item.get("type")) in _CALLS


def is_own(item: Mapping[str, Any]) -> bool:
    return str(item.get("type")) not in _READ


def text_of(item: Mapping[str, Any]) -> str | None:
    parts = _objects(item.get("content"))
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "output_text"]
    return "".join(texts) if texts else None


def refusal_of(item: Mapping[str, Any]) -> str:
    return "".join(str(part.get("refusal") or "") for part in _objects(item.get("content")))


def thoughts_of(item: Mapping[str, Any]) -> Iterable[str]:
    if item.get("type") == "reasoning":
        for part in (*_objects(item.get("content")), *_objects(item.get("summary"))):
            if isinstance(part.get("text"), str):
                yield part["text"]


def chat_call(item: Mapping[str, Any]) -> Json:
    call_id, name = item.get("call_id") or item.get("id") or "", item.get("name") or ""
    if item["type"] == "custom_tool_call":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": item.get("input") or ""}}
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": item.get("arguments") or ""}}


def annotations_of(item: Mapping[str, Any]) -> Iterable[Json]:
    for part in _objects(item.get("content")):
        yield from map(annotation_of, _objects(part.get("annotations")))


def annotation_of(found: Mapping[str, Any]) -> Json:
    kind = str(found.get("type"))
    return {"type": kind, kind: {name: value for name, value in found.items() if name != "type"}}


def _objects(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _gathered(events: bytes) -> Json:
    response: Json = {}
    items: dict[int, Json] = {}
    parser = EventParser()
    for event in (*parser.feed(events), *parser.flush()):
        read = _decode(event.data)
        kind, index = read.get("type"), read.get("output_index")
        if isinstance(read.get("response"), dict):
            response = read["response"]
            if kind in _LAST and response.get("output"):
                return response
        elif isinstance(index, int):
            _grow(items, index, read)
    return {**response, "output": [items[index] for index in sorted(items)]}


def _grow(items: dict[int, Json], index: int, event: Mapping[str, Any]) -> None:
    kind = str(event.get("type"))
    if kind in ("response.output_item.added", "response.output_item.done") and isinstance(event.get("item"), dict):
        items[index] = event["item"]
    elif kind in _PIECES and index in items and isinstance(event.get("delta"), str):
        item, part = items[index], _PIECES[kind]
        parts = item.setdefault("summary" if part == "summary_text" else "content", [])
        name = "refusal" if part == "refusal" else "text"
        if not parts or parts[-1].get("type") != part:
            parts.append({"type": part, name: ""})
        parts[-1][name] += event["delta"]
    elif kind == "response.function_call_arguments.delta" and index in items and isinstance(event.get("delta"), str):
        items[index]["arguments"] = (items[index].get("arguments") or "") + event["delta"]
