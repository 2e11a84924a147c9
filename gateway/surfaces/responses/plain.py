"""A fast path for requests that need no translation, which most are: texts, and parameters of the same meaning. Fields
only get other names and places."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from gateway.surfaces.checks import Json


class _Item(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user"]
    content: str


class _Plain(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    input: Annotated[str, msgspec.Meta(min_length=1)] | Annotated[list[_Item], msgspec.Meta(min_length=1)]
    instructions: str = ""
    max_output_tokens: int = 0
    store: bool = False
    stream: bool = False
    temperature: float = 0.0
    top_p: float = 0.0
    user: str = ""


def plain_chat(fields: Json) -> Json | None:
    try:
        msgspec.convert(fields, _Plain)
    except msgspec.ValidationError:
        return None
    made = fields.copy()
    if made.pop("store", None):
        return None
    given, instructions, limit = made.pop("input"), made.pop("instructions", ""), made.pop("max_output_tokens", None)
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    made["messages"] = [{"role": "system", "content": instructions}, *messages] if instructions else messages
    if limit is not None:
        made["max_completion_tokens"] = limit
    return made
