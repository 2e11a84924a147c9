"""Requests that say in the Gemini API what a chat completion can say as well, which most do: texts, and parameters that
have only another name."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES
from gateway.protocol.wire import MAX_MESSAGES
from gateway.surfaces.checks import Json

# A character of a text takes at most six bytes in JSON, and four in UTF-8.
_Text = Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE_BYTES // 6)]


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    text: _Text


_OnePart = Annotated[list[_Part], msgspec.Meta(min_length=1, max_length=1)]


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    parts: _OnePart
    role: Literal["user", "model"] = "user"


class _Instruction(msgspec.Struct, forbid_unknown_fields=True):
    parts: _OnePart
    role: str = ""


class _Config(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None


class _Plain(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    contents: Annotated[list[_Content], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES - 1)]
    system_instruction: _Instruction | None = None
    generation_config: _Config | None = None


_ROLES = {"user": "user", "model": "assistant"}


def plain_chat(fields: Json, model: str) -> Json | None:
    """Returns the fields of the chat completion that `read` makes of the request, None for one that is not plain."""
    try:
        plain = msgspec.convert(fields, _Plain)
    except msgspec.ValidationError:
        return None
    messages: list[Json] = [{"role": _ROLES[one.role], "content": one.parts[0].text} for one in plain.contents]
    if plain.system_instruction is not None and (text := plain.system_instruction.parts[0].text):
        messages.insert(0, {"role": "system", "content": text})
    made: Json = {"model": model, "messages": messages}
    if (config := plain.generation_config) is not None:
        if config.max_output_tokens is not None:
            made["max_tokens"] = config.max_output_tokens
        if config.temperature is not None:
            made["temperature"] = config.temperature
        if config.top_p is not None:
            made["top_p"] = config.top_p
        if config.top_k is not None:
            made["top_k"] = config.top_k
    return made
