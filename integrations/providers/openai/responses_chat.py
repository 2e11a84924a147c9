"""Makes the chat completion of a response, for the record and the check of a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from integrations.providers.common.sse import EventParser, UnreadableStreamError
from integrations.providers.common.surrogates import lenient
from integrations.providers.openai.responses_shapes import (
    calls_tools,
    chat_usage,
    decode_response,
    finish_reason,
)
from integrations.providers.openai.shapes import CHUNK, COMPLETION

Json = dict[str, Any]

_decode = lenient(msgspec.json.Decoder(Json).decode)
_encode = msgspec.json.Encoder().encode
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ENCRYPTED = b'"encrypted_content"'
_READ = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})
# The deltas of an item that did not end, with the type of the item's part that they belong to.
_PIECES = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
    "response.reasoning_summary_text.delta": "summary_text",
}


def chat_completion(answer: bytes) -> bytes:
    """Returns the JSON of the chat completion; empty bytes for an answer that cannot be read."""
    try:
        return _encode(_completion(_decode(answer)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return b""


def chat_frames(events: bytes) -> bytes:
    """Returns the completion of a stream, however short, as one framed chunk; empty bytes for unreadable events."""
    try:
        completion = _completion(_gathered(events))
    except (msgspec.DecodeError, UnicodeDecodeError, UnreadableStreamError):
        return b""
    choice = completion["choices"][0]
    choice["delta"] = choice.pop("message")
    return b"data: %b\n\n" % _encode({**completion, "object": CHUNK})


def without_reasoning(body: bytes) -> bytes:
    """Returns the request without the encrypted reasoning of the model; the very bytes where it has none."""
    if _ENCRYPTED not in body:
        return body
    fields = _decode(body)
    items = fields.get("input")
    if isinstance(items, list):
        fields["input"] = [item for item in items if not (isinstance(item, dict) and item.get("encrypted_content"))]
    return _encode(fields)


def _completion(response: Json) -> Json:
    read = decode_response(_encode(response))
    items = [item for item in response.get("output") or () if isinstance(item, dict)]
    finish = finish_reason(read, called_tools=calls_tools(read.output))
    usage = {"usage": chat_usage(read.usage)} if read.usage else {}
    return {
        "id": response.get("id") or "",
        "object": COMPLETION,
        "created": response.get("created_at") or 0,
        "model": response.get("model") or "",
        "choices": [{"index": 0, "message": _message(items), "finish_reason": finish}],
        **usage,
    }


def _message(items: list[Json]) -> Json:
    """Returns the message of the items; the calls of the provider's own tools stand in `provider_specific_fields`."""
    parts = [part for item in items if item.get("type") == "message" for part in _objects(item.get("content"))]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "output_text"]
    message: Json = {"role": "assistant", "content": "".join(texts) if texts else None}
    if refusal := "".join(str(part.get("refusal") or "") for part in parts):
        message["refusal"] = refusal
    if reasoning := "\n\n".join(_thoughts(items)):
        message["reasoning_content"] = reasoning
    if calls := [_call(item) for item in items if item.get("type") in ("function_call", "custom_tool_call")]:
        message["tool_calls"] = calls
    if annotations := [_annotation(one) for part in parts for one in _objects(part.get("annotations"))]:
        message["annotations"] = annotations
    if own := [item for item in items if item.get("type") not in _READ]:
        message["provider_specific_fields"] = {"output": own}
    return message


def _thoughts(items: list[Json]) -> Iterable[str]:
    for item in items:
        if item.get("type") == "reasoning":
            for part in (*_objects(item.get("content")), *_objects(item.get("summary"))):
                if isinstance(part.get("text"), str):
                    yield part["text"]


def _call(item: Json) -> Json:
    call_id, name = item.get("call_id") or item.get("id") or "", item.get("name") or ""
    if item["type"] == "custom_tool_call":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": item.get("input") or ""}}
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": item.get("arguments") or ""}}


def _annotation(found: Json) -> Json:
    kind = str(found.get("type"))
    return {"type": kind, kind: {name: value for name, value in found.items() if name != "type"}}


def _objects(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _gathered(events: bytes) -> Json:
    """Returns the response of a stream: as its last event states it, with the items that came before where that event
    is missing or holds none."""
    response: Json = {}
    items: dict[int, Json] = {}
    parser = EventParser()
    for event in (*parser.feed(events), *parser.flush()):
        read = _decode(event.data)
        kind, index = read.get("type"), read.get("output_index")
        if isinstance(read.get("response"), dict):
            response = read["response"]
            if kind in _ENDS and response.get("output"):
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
