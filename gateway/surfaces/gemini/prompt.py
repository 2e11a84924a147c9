"""Puts a managed prompt into the bytes of a client's own request."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.surfaces.prompt import instructions_of, turns_of
from prompts.content.messages import PromptMessage

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_SYSTEM, _SNAKE, _CONTENTS = "systemInstruction", "system_instruction", "contents"
_ROLES = {"assistant": "model"}


def with_prompt(body: bytes, messages: Sequence[PromptMessage]) -> bytes:
    """Returns the body with the instructions as `systemInstruction`, which it has none of: the field is absent, null or
    empty. The turns stand before the client's contents. The values of all other fields keep their bytes."""
    text, turns = instructions_of(messages), turns_of(messages)
    fields = _decoder.decode(body)
    if text:
        fields.pop(_SNAKE, None)
        fields[_SYSTEM] = msgspec.Raw(_encode({"parts": [{"text": text}]}))
    if turns:
        own = bytes(fields[_CONTENTS]).strip()
        items = own if own.startswith(b"{") else own[1:-1].strip()
        before = _encode([_content(turn) for turn in turns])[:-1]
        fields[_CONTENTS] = msgspec.Raw(b"".join((before, b"," if items else b"", items, b"]")))
    return _encode(fields)


def _content(turn: PromptMessage) -> dict[str, object]:
    return {"role": _ROLES.get(turn["role"], turn["role"]), "parts": [{"text": turn["content"]}]}
