from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from gateway.protocol import sse
from gateway.protocol.reply import JSON, HeaderList
from gateway.surfaces.gemini.embed import EmbedSurface
from gateway.surfaces.reply import SurfaceReply

# Google's SDKs read every line that is no data as a failure, a comment too, and pass over empty ones.
_HEARTBEAT = b"\n"


class GeminiReply(SurfaceReply):
    __slots__ = ()

    def whole(
        self, status: int, body: bytes, extra: HeaderList, content_type: tuple[bytes, bytes] = JSON
    ) -> Coroutine[Any, Any, None]:
        if status == 200 and isinstance(self.surface, EmbedSurface):
            body = self.surface.embedded(body)
        return super().whole(status, body, extra, content_type)

    def _encoded(self, data: bytes) -> bytes:
        return _HEARTBEAT if data is sse.HEARTBEAT else super()._encoded(data)


class GeminiArrayReply(GeminiReply):
    """A stream that is one JSON array, for clients without `alt=sse`. Its items are the events' data."""

    __slots__ = ("_has_items",)

    async def start_stream(self, extra: HeaderList) -> None:
        self._has_items = False
        self.started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [JSON, *self.ids, *extra]})

    def piece_writer(self) -> Callable[[bytes], bool]:
        return self._write_encoded

    def _encoded(self, data: bytes) -> bytes:
        encoded = super()._encoded(data)
        return encoded if encoded is _HEARTBEAT else self._items(encoded)

    async def end_with(self, data: bytes) -> None:
        begin = b"" if self._has_items else b"["
        items = self._items(data)
        await super().end_with((items or begin) + b"]")

    def _items(self, events: bytes) -> bytes:
        found = [_data(block) for block in events.split(b"\n\n") if block.strip()]
        if not found:
            return b""
        begin, self._has_items = b",\r\n" if self._has_items else b"[", True
        return begin + b",\r\n".join(found)


def _data(event: bytes) -> bytes:
    return b"\n".join(line.removeprefix(b"data: ") for line in event.split(b"\n"))
