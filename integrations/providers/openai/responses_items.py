"""Writes the messages of a chat completion as the items of a request of the Responses API
(https://developers.openai.com/api/docs/guides/migrate-to-responses)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from integrations.providers.openai.limits import short_id

Json = dict[str, Any]

_ENCRYPTED = "reasoning.encrypted"
_FILE_FIELDS = ("file_id", "filename", "file_data")
_BREAKPOINT = "prompt_cache_breakpoint"


def encrypted_reasoning(item: Mapping[str, Any], place: int, form: str) -> Json | None:
    """Returns the entry of `reasoning_details` that brings an item of reasoning back; None for one that nobody could
    read again. `place` is the number of items in front of it, `form` the format of the vendor's reasoning."""
    data = item.get("encrypted_content")
    if not isinstance(data, str) or not data:
        return None
    return {"type": _ENCRYPTED, "id": item.get("id") or "", "data": data, "format": form, "index": place}


def input_items(messages: Iterable[Any]) -> list[Json]:
    """Returns the items. The `reasoning_details` of the messages are the vendor's own."""
    items: list[Json] = []
    custom: set[str] = set()  # `custom` holds the ids of the calls of custom tools, whose results are of another type.
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            items += _answer(message, custom)
        elif role == "tool":
            items.append(_result(message, custom))
        else:
            items.append({"role": role, "content": _content(message.get("content"), "input_text")})
    return items


def _answer(message: Mapping[str, Any], custom: set[str]) -> list[Json]:
    """Returns the items of an earlier answer, each with its reasoning in front of it."""
    content = _content(message.get("content"), "output_text")
    if message.get("refusal"):
        parts = [{"type": "output_text", "text": content}] if isinstance(content, str) and content else content or []
        content = [*parts, {"type": "refusal", "refusal": message["refusal"]}]
    items: list[Json] = [{"role": "assistant", "content": content}] if content else []
    items += [_call(call, custom) for call in message.get("tool_calls") or ()]
    for number, detail in enumerate(message.get("reasoning_details") or ()):
        if detail.get("type") == _ENCRYPTED:
            place = detail.get("index")
            items.insert(place if isinstance(place, int) and place >= 0 else number, _reasoning(detail))
    return items


def _reasoning(detail: Mapping[str, Any]) -> Json:
    own_id = {"id": detail["id"]} if detail.get("id") else {}
    return {"type": "reasoning", **own_id, "summary": [], "encrypted_content": detail.get("data")}


def _id(call_id: Any) -> Any:
    return short_id(call_id) if isinstance(call_id, str) else call_id


def _call(call: Mapping[str, Any], custom: set[str]) -> Json:
    call_id = _id(call.get("id"))
    if call.get("type") == "custom" and isinstance(inner := call.get("custom"), Mapping):
        custom.add(str(call_id))
        return {"type": "custom_tool_call", "call_id": call_id, "name": inner.get("name"), "input": inner.get("input")}
    function = call.get("function")
    if not isinstance(function, Mapping):
        return dict(call)  # The vendor refuses it with its own message.
    named = {"call_id": call_id, "name": function.get("name"), "arguments": function.get("arguments")}
    return {"type": "function_call", **named}


def _result(message: Mapping[str, Any], custom: set[str]) -> Json:
    call_id = _id(message.get("tool_call_id"))
    kind = "custom_tool_call_output" if str(call_id) in custom else "function_call_output"
    output = _content(message.get("content"), "input_text")
    if isinstance(output, list) and all(part.keys() == {"type", "text"} for part in output):
        output = "\n".join(part["text"] for part in output)
    return {"type": kind, "call_id": call_id, "output": output}


def _content(content: Any, text_type: str) -> str | list[Json]:
    if not isinstance(content, list):
        return content or ""
    return [_part(part, text_type) if isinstance(part, Mapping) else part for part in content]


def _part(part: Mapping[str, Any], text_type: str) -> Json:
    """Returns the part under the names that it has in an item; one of an unknown type is left to the vendor."""
    kept = {_BREAKPOINT: part[_BREAKPOINT]} if _BREAKPOINT in part else {}
    inner = part.get(str(part.get("type")))
    match part.get("type"):
        case "text":
            return {"type": text_type, "text": part.get("text"), **kept}
        case "image_url":
            image = inner if isinstance(inner, Mapping) else {"url": inner}
            return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail", "auto"), **kept}
        case "file" if isinstance(inner, Mapping):
            file = {name: inner[name] for name in _FILE_FIELDS if inner.get(name) is not None}
            return {"type": "input_file", **file, **kept}
    return dict(part)
