from __future__ import annotations

from collections.abc import Sequence

import msgspec

from core.errors import ApplicationError
from gateway.protocol import sse
from gateway.surfaces.base import StreamEncoder, SurfaceRequest
from prompts.content.messages import PromptMessage


class ChatStream:
    def feed(self, chunks: Sequence[bytes]) -> bytes:
        return b"".join(map(sse.frame, chunks))

    def close(self, chunks: Sequence[bytes]) -> bytes:
        return self.feed(chunks) + sse.DONE

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        return sse.frame(msgspec.json.encode(error.envelope())) + sse.DONE


class ChatSurface:
    """Chat completions, and the base of surfaces whose requests, answers or errors have OpenAI's form too."""

    name = "chat"
    operation = "chat"
    native_only = False
    counts = False

    def read(self, body: bytes) -> SurfaceRequest:
        return SurfaceRequest(body)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return completion

    def stream(self, request: SurfaceRequest, request_id: str) -> StreamEncoder:
        return ChatStream()

    def error(self, error: ApplicationError, request_id: str) -> bytes:
        return msgspec.json.encode(error.envelope())

    def forwarded(self, body: bytes) -> bytes:
        return body

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        return body


CHAT = ChatSurface()
