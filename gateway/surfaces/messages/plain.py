"""Requests that say in the Messages API what they would say in a chat completion, which most do: texts, and parameters
of the same name and meaning. They need no translation but a place for the instructions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES
from gateway.protocol.wire import MAX_MESSAGES

# A character of a text takes at most six bytes in JSON, and four in UTF-8.
_Text = Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE_BYTES // 6)]
_Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]

Json = dict[str, Any]


class _Turn(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: _Text


class _Plain(msgspec.Struct, forbid_unknown_fields=True):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    messages: Annotated[list[_Turn], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES)]
    system: str = ""
    stream: bool = False
    temperature: _Share = 0.0
    top_p: _Share = 0.0
    top_k: Annotated[int, msgspec.Meta(ge=0)] = 0


def plain_chat(fields: Json) -> Json | None:
    """Returns the fields of the chat completion that `read` makes of the request, None for one that is not plain."""
    try:
        msgspec.convert(fields, _Plain)
    except msgspec.ValidationError:
        return None
    messages = fields["messages"]
    made: Json = {"model": fields["model"], "messages": messages}
    made |= fields
    if "system" in fields:
        del made["system"]
        if fields["system"]:
            made["messages"] = [{"role": "system", "content": fields["system"]}, *messages]
    return made
