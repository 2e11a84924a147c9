"""Makes a message of the Messages API from a whole chat completion."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gateway.surfaces import shapes
from gateway.surfaces.messages.content import content_of
from gateway.surfaces.messages.finish import OF_THE_END, message_id, stop_fields, usage_of
from gateway.surfaces.messages.search import search_blocks
from gateway.surfaces.tool_names import restore_names

_encode = msgspec.json.Encoder().encode


def message_of(completion: bytes, request_id: str, tool_names: Mapping[str, str], *, searched: bool = False) -> bytes:
    """Returns the JSON of the message. Of several choices the first one counts: the Messages API has no more.
    `searched` means that the client offered a search of the web."""
    answer = shapes.decode(completion)
    choice = answer.choices[0] if answer.choices else shapes.Choice()
    message = choice.message or shapes.Message()
    if tool_names:
        restore_names(message, tool_names)
    specific = message.provider_specific_fields or {}
    made = {
        "id": message_id(answer.id, request_id),
        "type": "message",
        "role": "assistant",
        "model": answer.model or "",
        "content": [*(search_blocks(message.annotations or (), request_id) if searched else ()), *content_of(message)],
        **stop_fields(choice.finish_reason, specific, message.refusal or ""),
        "usage": usage_of(answer.usage),
        **{name: specific[name] for name in OF_THE_END if specific.get(name) is not None},
    }
    if message.container is not None:
        made["container"] = message.container
    return _encode(made)


def counted(completion: bytes) -> bytes:
    """Returns the JSON of the answer to a request to count tokens: those of the completion's whole prompt."""
    usage = usage_of(shapes.decode(completion).usage)
    cached = usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]
    return count_body(usage["input_tokens"] + cached)


def count_body(input_tokens: int) -> bytes:
    return _encode({"input_tokens": input_tokens})
