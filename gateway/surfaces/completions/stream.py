"""Makes the chunks of a streamed completion out of those of a chat completion."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from core.errors import ApplicationError
from gateway.protocol import sse
from gateway.surfaces.completions.response import decode, made_of

_encode = msgspec.json.Encoder().encode


class CompletionStream:
    """The chunks of one completion. Those that hold no text, no end and no usage are left out."""

    __slots__ = ("_request_id",)

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id

    def feed(self, chunks: Sequence[bytes]) -> bytes:
        return b"".join(map(self._frame, chunks))

    def close(self, chunks: Sequence[bytes]) -> bytes:
        return self.feed(chunks) + sse.DONE

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        return sse.frame(_encode(error.envelope())) + sse.DONE

    def _frame(self, chunk: bytes) -> bytes:
        made = made_of(decode(chunk), self._request_id)
        says = any(choice["text"] or choice["finish_reason"] for choice in made["choices"])
        return sse.frame(_encode(made)) if says or "usage" in made else b""
