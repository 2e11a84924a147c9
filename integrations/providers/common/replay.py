"""Makes a stream of a whole answer, for providers that ignore `stream`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import StreamEvent
from integrations.providers.common.surrogates import lenient
from integrations.providers.common.usage import usage_object
from integrations.providers.usage import Usage

_GROWING = ("annotations", "images", "reasoning_details", "tool_calls")
_SPECIFIC = "provider_specific_fields"
_encode = msgspec.json.Encoder().encode
_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def chunks_of(completion: bytes, usage: Usage) -> list[StreamEvent]:
    fields = _decode(completion)
    choices, counts = fields.pop("choices"), fields.pop("usage", None) or usage_object(usage)
    base = {**fields, "object": "chat.completion.chunk"}
    events = [_event(base, choice) for choice in choices]
    ends = [{"index": one["index"], "delta": {}, "finish_reason": one["finish_reason"]} for one in choices]
    return [*events, StreamEvent(_encode({**base, "choices": ends, "usage": counts}), False)]


def _event(base: Mapping[str, Any], choice: Mapping[str, Any]) -> StreamEvent:
    delta = _delta(choice["message"])
    made = {**choice, "delta": delta, "finish_reason": None}
    del made["message"]
    text = delta.get("content") if choice["index"] == 0 else ""
    return StreamEvent(_encode({**base, "choices": [made]}), True, text if isinstance(text, str) else "")


def _delta(message: Mapping[str, Any]) -> dict[str, Any]:
    delta = {name: _numbered(value) if name in _GROWING else value for name, value in message.items()}
    if isinstance(delta.get(_SPECIFIC), Mapping):
        delta[_SPECIFIC] = {name: _numbered(value) for name, value in delta[_SPECIFIC].items()}
    return delta


def _numbered(value: Any) -> Any:
    """Numbers a list of objects: the SDK's stream helper joins entries by index."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        return value
    return [{**entry, "index": number} for number, entry in enumerate(value)]
