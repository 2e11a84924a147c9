"""Puts a managed prompt into the bytes of a client's own request."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.surfaces.prompt import instructions_of, turns_of, with_turns
from prompts.content.messages import PromptMessage

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_SYSTEM, _MESSAGES = "system", "messages"


def with_prompt(body: bytes, messages: Sequence[PromptMessage]) -> bytes:
    """Returns the body with the instructions as `system`, which it has none of: the field is absent, null or empty. The
    turns stand before the client's messages. The values of all other fields keep their bytes."""
    text, turns = instructions_of(messages), turns_of(messages)
    fields = _decoder.decode(body)
    if not turns and _SYSTEM not in fields:
        head, _, tail = body.rpartition(b"}")
        comma = b"," if fields else b""
        return b'%b%b"%b":%b}%b' % (head, comma, _SYSTEM.encode(), _encode(text), tail)
    if text:
        fields[_SYSTEM] = msgspec.Raw(_encode(text))
    if turns:
        fields[_MESSAGES] = with_turns(turns, fields[_MESSAGES])
    return _encode(fields)
