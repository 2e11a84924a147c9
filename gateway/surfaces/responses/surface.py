from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.surfaces.base import StreamEncoder, SurfaceRequest
from gateway.surfaces.chat.surface import ChatSurface
from gateway.surfaces.prompt import instructions_of, turns_of, with_turns
from gateway.surfaces.responses.reasoning import without_foreign
from gateway.surfaces.responses.request import read
from gateway.surfaces.responses.response import whole
from gateway.surfaces.responses.stream import ResponseStream
from prompts.content.messages import PromptMessage

# A request with one of these fields goes on with a conversation that the provider keeps.
_KEPT = ("previous_response_id", "conversation")
_EMPTY = (b"null", b'""')
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _is_set(fields: dict[str, msgspec.Raw], name: str) -> bool:
    return name in fields and bytes(fields[name]) not in _EMPTY


def _items(given: msgspec.Raw | None) -> msgspec.Raw:
    if given is None or bytes(given) in _EMPTY:
        return msgspec.Raw(b"[]")
    if bytes(memoryview(given)[:1]) == b"[":
        return given
    return msgspec.Raw(b'[{"role":"user","content":%b}]' % bytes(given))


class ResponsesSurface(ChatSurface):
    name = "responses"
    operation = "responses"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return whole(request, completion, request_id)

    def stream(self, request: SurfaceRequest, request_id: str) -> StreamEncoder:
        return ResponseStream(request, request_id)

    def forwarded(self, body: bytes) -> bytes:
        return without_foreign(body)

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        """Returns the client's body with `instructions`, and with the turns before the client's items of `input`.

        A request that goes on with a conversation of the provider's gets the instructions alone, which providers do not
        keep: the turns were sent with the first request.
        """
        text, turns = instructions_of(messages), turns_of(messages)
        fields = _decode(body)
        if text:
            fields["instructions"] = msgspec.Raw(_encode(text))
        if turns and not any(_is_set(fields, name) for name in _KEPT):
            fields["input"] = with_turns(turns, _items(fields.get("input")))
        return _encode(fields)


SURFACE = ResponsesSurface()
