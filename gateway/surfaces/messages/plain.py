"""A fast path for requests that need no translation, which most are: texts, and parameters of the same name and
meaning. Only the instructions move."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES
from gateway.protocol.wire import MAX_MESSAGES
from gateway.surfaces.checks import Json

# A character of a text takes at most six bytes in JSON, and four in UTF-8.
_Text = Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE_BYTES // 6)]
_Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


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
