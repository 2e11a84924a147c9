"""Assembles the chat completion of a streamed answer, whose events the hot path records as they were sent."""

from __future__ import annotations

from typing import Any

import msgspec

_decode = msgspec.json.Decoder(dict[str, Any]).decode
# These fields are sent once or with every chunk, and are never pieces to be joined.
_WHOLE = frozenset({"id", "type", "role", "name", "index", "function_name"})


def assembled(stream: bytes) -> bytes:
    """Returns the JSON of a `chat.completion` from `data: <chunk>` events, even of a truncated stream.

    It never raises.
    """
    completion: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for line in stream.split(b"\n\n"):
        chunk = _chunk(line)
        if chunk is None:
            continue
        listed = chunk.pop("choices", None)
        for choice in listed if isinstance(listed, list) else ():
            if isinstance(choice, dict):
                _add_choice(choices, choice)
        completion.update((name, value) for name, value in chunk.items() if value is not None)
    if not completion and not choices:
        return b""
    completion["object"] = "chat.completion"
    completion["choices"] = [choices[index] for index in sorted(choices)]
    return msgspec.json.encode(completion)


def _chunk(event: bytes) -> dict[str, Any] | None:
    if not event.startswith(b"data: {"):
        return None
    try:
        return _decode(event[6:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _add_choice(choices: dict[int, dict[str, Any]], chunk: dict[str, Any]) -> None:
    index = chunk.get("index")
    whole = choices.setdefault(
        index if isinstance(index, int) else 0,
        {"index": index, "message": {"role": "assistant"}, "finish_reason": None},
    )
    if chunk.get("finish_reason") is not None:
        whole["finish_reason"] = chunk["finish_reason"]
    if isinstance(chunk.get("delta"), dict):
        _merge(whole["message"], chunk["delta"])


def _merge(whole: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        known = whole.get(name)
        if value is None:
            whole.setdefault(name, None)
        elif known is None:
            whole[name] = _merge_list([], value) if isinstance(value, list) else value
        elif isinstance(known, str) and isinstance(value, str):
            whole[name] = known if name in _WHOLE else known + value
        elif isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            _merge_list(known, value)
        else:
            whole[name] = value


def _merge_list(whole: list[Any], delta: list[Any]) -> list[Any]:
    """Items with an `index` (tool calls) are pieces of the item with that index; others are appended."""
    for item in delta:
        index = item.get("index") if isinstance(item, dict) else None
        same = next(
            (one for one in whole if isinstance(one, dict) and index is not None and one.get("index") == index), None
        )
        if same is None:
            whole.append(item)
        else:
            _merge(same, item)
    return whole
