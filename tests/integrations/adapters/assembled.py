"""Joins a stream's chunks the way SDKs and agents do, to compare the result with the whole answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, cast

from openai.lib.streaming._deltas import accumulate_delta


def assembled(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the message of choice 0 and, under `finish_reason` and `usage`, the values from the chunks about its
    end."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    details: list[dict[str, Any]] = []
    end: dict[str, Any] = {"finish_reason": None, "usage": None}
    for chunk in chunks:
        end["usage"] = chunk.get("usage") or end["usage"]
        for choice in chunk["choices"]:
            if choice["index"] != 0:
                continue
            end["finish_reason"] = choice.get("finish_reason") or end["finish_reason"]
            _add_delta(message, choice["delta"], calls, details)
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    if details:
        message["reasoning_details"] = details
    return {"message": message, **end}


def with_details_appended(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the message of a client that appends every entry of `reasoning_details` to one list."""
    received = list(chunks)
    message: dict[str, Any] = assembled(received)["message"]
    deltas = (choice["delta"] for chunk in received for choice in chunk["choices"])
    if details := [detail for delta in deltas for detail in delta.get("reasoning_details") or ()]:
        message["reasoning_details"] = details
    return message


def as_the_sdk_does(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the message as the official SDK's stream helper accumulates it: by `index`, strings joined."""
    message: dict[object, object] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            message = accumulate_delta(message, deepcopy(choice["delta"]))
    fields = cast("dict[str, Any]", message)
    for call in fields.get("tool_calls") or ():
        call.pop("index")
    return fields


def _add_delta(
    message: dict[str, Any],
    delta: Mapping[str, Any],
    calls: dict[int, dict[str, Any]],
    details: list[dict[str, Any]],
) -> None:
    for name in ("content", "reasoning_content", "refusal"):
        if delta.get(name):
            message[name] = (message.get(name) or "") + delta[name]
    for fragment in delta.get("tool_calls") or ():
        _add_call(calls, fragment)
    for detail in delta.get("reasoning_details") or ():
        _add_detail(details, detail)
    for name, value in (delta.get("provider_specific_fields") or {}).items():
        _add_specific(message.setdefault("provider_specific_fields", {}), name, value)


def _add_specific(fields: dict[str, Any], name: str, value: Any) -> None:
    """Extends a list by its new entries, without the numbers that the stream gives them; replaces any other value."""
    if not isinstance(value, list):
        fields[name] = value
        return
    entries = [{k: v for k, v in one.items() if k != "index"} if isinstance(one, dict) else one for one in value]
    fields[name] = [*fields.get(name, []), *entries]


def _add_call(calls: dict[int, dict[str, Any]], fragment: Mapping[str, Any]) -> None:
    call = calls.setdefault(fragment["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
    for name, value in fragment.items():
        if name == "function":
            call["function"]["name"] += value.get("name") or ""
            call["function"]["arguments"] += value.get("arguments") or ""
        elif name != "index" and value is not None:
            call[name] = value


def _add_detail(details: list[dict[str, Any]], detail: Mapping[str, Any]) -> None:
    """Merges a fragment of reasoning into the block with its index and type: texts are joined, other values are set."""
    known = details[-1] if details else None
    if known is None or (known.get("index"), known["type"]) != (detail.get("index"), detail["type"]):
        details.append(dict(detail))
        return
    for name, value in detail.items():
        joined = name in ("text", "summary", "data") and value is not None
        known[name] = (known.get(name) or "") + value if joined else (value or known.get(name))
