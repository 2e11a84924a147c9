from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec

from core.errors import ApplicationError
from gateway.protocol import sse
from gateway.protocol.reply import JSON, HeaderList, Reply, Send
from gateway.surfaces.base import StreamEncoder, Surface, SurfaceRequest
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.native_only import NativeOnlySurface

_NOT_READ = SurfaceRequest(b"{}")


def reply_of(surface: Surface) -> Callable[[Send, str], Reply]:
    """The maker takes the ASGI `send` and the request's id."""
    return Reply if surface is CHAT else partial(SurfaceReply, surface)


def surface_of(reply: Reply) -> Surface:
    return reply.surface if isinstance(reply, SurfaceReply) else CHAT


class SurfaceReply(Reply):
    """Translates chat completions to the client's protocol. An answer in the client's own form (`is_native`) is relayed
    unchanged."""

    __slots__ = ("_encoder", "surface")

    def __init__(self, surface: Surface, send: Send, request_id: str) -> None:
        super().__init__(send, request_id)
        self.surface = surface
        self._encoder: StreamEncoder | None = None

    def whole(
        self, status: int, body: bytes, extra: HeaderList, content_type: tuple[bytes, bytes] = JSON
    ) -> Coroutine[Any, Any, None]:
        if status == 200:
            if not self.is_native:
                body = self.surface.answer(self._request(), body, self.request_id)
            elif isinstance(self.surface, NativeOnlySurface):
                content_type = (b"content-type", self.surface.content_type(self._request()))
        return super().whole(status, body, extra, content_type)

    def encoded_error(self, error: ApplicationError) -> bytes:
        return self.surface.error(error, self.request_id)

    async def part(self, data: bytes) -> None:
        encoded = self._encoded(data)
        if encoded:
            await super().part(encoded)

    def piece_writer(self) -> Callable[[bytes], bool]:
        return super().piece_writer() if self.is_native else self._write_encoded

    def _write_encoded(self, data: bytes) -> bool:
        if self.writer is None or not self.writer.takes_pieces:
            return False
        encoded = self._encoded(data)
        return not encoded or self.writer.write_piece(encoded)

    def _encoded(self, data: bytes) -> bytes:
        return data if self.is_native or data is sse.HEARTBEAT else self._stream().feed(sse.data_of(data))

    async def end(self, data: bytes) -> None:
        await self.end_with(data if self.is_native else self._stream().close(sse.data_of(data)))

    async def end_with_error(self, error: ApplicationError, sent: Sequence[bytes] = ()) -> None:
        relayed = b"".join(sent) if self.is_native else b""
        await self.end_with(self._stream().fail(error, relayed))

    def _request(self) -> SurfaceRequest:
        request: SurfaceRequest = self.request if self.request is not None else _NOT_READ
        return msgspec.structs.replace(request, is_relayed=True) if self.is_native else request

    def _stream(self) -> StreamEncoder:
        if self._encoder is None:
            self._encoder = self.surface.stream(self._request(), self.request_id)
        return self._encoder
