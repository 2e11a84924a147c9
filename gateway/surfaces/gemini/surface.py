"""The model and the method stand in a request's address, so each of them has its own surface
(`gateway.surfaces.gemini.address`)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.gemini.errors import error_body
from gateway.surfaces.gemini.foreign import without_foreign
from gateway.surfaces.gemini.request import read, read_count
from gateway.surfaces.gemini.response import count_body, response_of, tokens_of
from gateway.surfaces.gemini.stream import GeminiStream
from gateway.surfaces.prompt import instructions_of, turns_of
from prompts.content.messages import PromptMessage

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_SYSTEM, _SNAKE, _CONTENTS = "systemInstruction", "system_instruction", "contents"
_ROLES = {"assistant": "model"}


def _content(turn: PromptMessage) -> dict[str, object]:
    return {"role": _ROLES.get(turn["role"], turn["role"]), "parts": [{"text": turn["content"]}]}


class GeminiSurface:
    """`streams`: the address asks for a stream; `as_array`: as one JSON array instead of server-sent events."""

    name = "gemini"
    operation = "generate_content"
    native_only = False
    counts = False
    error = staticmethod(error_body)
    forwarded = staticmethod(without_foreign)

    def __init__(self, model: str, *, streams: bool = False, as_array: bool = False) -> None:
        self.model, self.streams, self.as_array = model, streams, as_array

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body, self.model, stream=self.streams)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return response_of(request, completion, request_id)

    def stream(self, request: SurfaceRequest, request_id: str) -> GeminiStream:
        return GeminiStream(request, request_id)

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        """Returns the body with the instructions as `systemInstruction` and the turns before the client's contents. The
        values of all other fields keep their bytes."""
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


class CountContentSurface(GeminiSurface):
    operation = "count_content_tokens"
    counts = True
    count = staticmethod(count_body)

    def read(self, body: bytes) -> SurfaceRequest:
        return read_count(body, self.model)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return count_body(tokens_of(completion))


SURFACE = GeminiSurface("")
"""The surface for what belongs to no model: errors of addresses, and the list of models."""
