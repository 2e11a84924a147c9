from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.messages.content import count_body, counted, message_of
from gateway.surfaces.messages.errors import error_body
from gateway.surfaces.messages.foreign import without_foreign
from gateway.surfaces.messages.request import read, read_count
from gateway.surfaces.messages.stream import MessagesStream
from gateway.surfaces.prompt import instructions_of, turns_of, with_turns
from prompts.content.messages import PromptMessage

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_SEARCH = "web_search_options"
_SYSTEM, _MESSAGES = "system", "messages"


class MessagesSurface:
    name = "messages"
    operation = "messages"
    native_only = False
    counts = False

    read = staticmethod(read)
    error = staticmethod(error_body)
    forwarded = staticmethod(without_foreign)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        searched = request.fields is not None and _SEARCH in request.fields
        return message_of(completion, request_id, request.tool_names, searched=searched)

    def stream(self, request: SurfaceRequest, request_id: str) -> MessagesStream:
        searched = request.fields is not None and _SEARCH in request.fields
        return MessagesStream(request_id, request.prompt_tokens, request.tool_names, searched=searched)

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        """Returns the body with the instructions as `system` and the turns before the client's messages. The values of
        all other fields keep their bytes."""
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


class CountTokensSurface(MessagesSurface):
    operation = "count_tokens"
    counts = True

    read = staticmethod(read_count)
    count = staticmethod(count_body)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return counted(completion)


SURFACE = MessagesSurface()
COUNT_TOKENS = CountTokensSurface()
