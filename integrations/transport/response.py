from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from math import inf
from typing import Protocol

from integrations.providers.errors import ProviderError
from integrations.transport import failures
from integrations.transport.base import Timeouts, UpstreamResponse
from integrations.transport.decompression import decompressed

ENCODING = b"content-encoding"
ENCODING_LENGTH = len(ENCODING)


class AnsweredBy(Protocol):
    host: str

    def await_data(self, seconds: float) -> None: ...

    def stop_waiting(self) -> None: ...

    def resume(self) -> None: ...

    def finish(self, response: PooledResponse) -> None: ...

    async def head_of(self, response: PooledResponse, timeouts: Timeouts) -> None: ...


class PooledResponse(AsyncIterator[bytes]):
    """The connection fills it and the caller empties it. A cancelled read loses nothing and may be repeated."""

    __slots__ = (
        "_connection",
        "_headers",
        "_loop",
        "_raised",
        "_waiter",
        "buffered",
        "complete",
        "error",
        "host",
        "idle",
        "is_paused",
        "pieces",
        "raw_headers",
        "status",
        "take",
        "touched",
    )

    def __init__(self, connection: AnsweredBy, loop: asyncio.AbstractEventLoop, idle: float) -> None:
        self.status = 0  # `status` is 0 until the head has arrived.
        self.raw_headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.buffered = 0  # `buffered` counts the bytes in `pieces`.
        self.is_paused = False  # `is_paused` is True while the connection does not read.
        self.touched = False  # `touched` is True when a byte of an answer was read.
        self.complete = False
        self.error: ProviderError | None = None
        self.idle = idle
        self.host = connection.host
        self._headers: dict[str, str] | None = None
        self._connection: AnsweredBy | None = connection
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        # `take` is the function of `deliver` while that waits: `hand_over` gives it what arrives, and nobody has to be
        # woken. `_raised` is what the function has raised.
        self.take: Callable[[bytes], bool] | None = None
        self._raised: BaseException | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            # The headers are decoded on demand, since those of most answers are never read.
            self._headers = {
                name.lower().decode("latin-1"): value.strip().decode("latin-1") for name, value in self.raw_headers
            }
        return self._headers

    async def read(self, *, limit: int, until: float = inf) -> bytes:
        if self.complete and self.buffered <= limit and time.monotonic() <= until:
            # Most answers have arrived as a whole, and need no turn for each piece.
            body = b"".join(self.pieces)
            self.pieces.clear()
            self.buffered = 0
            self.close()
            return body
        self._refuse_announced_size(limit)
        received: list[bytes] = []
        size = 0
        async for piece in self:
            size += len(piece)
            if size > limit:
                self.close()
                raise failures.too_large(self.host, limit)
            received.append(piece)
            if time.monotonic() > until:
                self.close()
                raise failures.too_slow(self.host)
        return received[0] if len(received) == 1 else b"".join(received)

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self.pieces:
            if self.complete:
                self.close()
                raise StopAsyncIteration
            if self.error is not None:
                raise self.error
            if self._connection is None:
                raise failures.closed_by_caller(self.host)
            await self.wait(self.idle)
        return self._emptied()

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        while True:
            if self.pieces and not take(self._emptied()):
                return False
            if self.complete:
                self.close()
                return True
            if self.error is not None:
                raise self.error
            if self._connection is None:
                raise failures.closed_by_caller(self.host)
            self.take = take
            try:
                await self.wait(self.idle)
            finally:
                was_refused, self.take = self.take is None, None
            if self._raised is not None:
                raised, self._raised = self._raised, None
                raise raised
            if was_refused:
                return False

    def hand_over(self) -> None:
        """Passes what has arrived to the function of a waiting `deliver`. The connection calls this once for everything
        it has read at a time, so that pieces which arrive together leave together."""
        take = self.take
        if take is None or not self.pieces:
            return
        try:
            # One piece is the common case, and needs no call.
            data = self.pieces.pop() if len(self.pieces) == 1 and not self.is_paused else self._emptied()
            self.buffered = 0
            goes_on = take(data)
        except BaseException as error:
            # The error belongs to the caller of `deliver`, and not to the event loop.
            self._raised, goes_on = error, False
        if not goes_on:
            self.take = None
            if self._connection is not None:
                self._connection.stop_waiting()
            self.wake()

    def _emptied(self) -> bytes:
        data = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        self.pieces.clear()
        self.buffered = 0
        if self.is_paused and self._connection is not None:
            self.is_paused = False
            self._connection.resume()
        return data

    def close(self) -> None:
        connection = self._connection
        if connection is not None:
            self._connection = None
            connection.finish(self)

    async def wait(self, seconds: float) -> None:
        if self._connection is not None:
            self._connection.await_data(seconds)
        self._waiter = self._loop.create_future()
        await self._waiter

    def wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():  # A cancelled reader's future is already done.
                waiter.set_result(None)

    def fail(self, error: ProviderError) -> None:
        """The first error counts, and data that arrived before it can still be read."""
        if self.error is None and not self.complete:
            self.error = error
            self.wake()

    @property
    def ends_with_connection(self) -> bool:
        """True if neither a length nor chunks mark the end of the body, so that it ends with the connection."""
        return bool(self.status) and "content-length" not in self.headers and not self._chunked

    @property
    def _chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower().endswith("chunked")

    def _refuse_announced_size(self, limit: int) -> None:
        if not self.complete and int(self.headers.get("content-length", 0)) > limit:
            self.close()
            raise failures.too_large(self.host, limit)


class WatchedResponse(PooledResponse):
    __slots__ = ("on_news",)

    # The connection sets it at once: a constructor would be one more call.
    on_news: Callable[[], None] | None

    def wake(self) -> None:
        if self.on_news is not None:
            self.on_news()
        else:
            super().wake()

    def body(self) -> bytes | None:
        for name, _ in self.raw_headers:
            if len(name) == ENCODING_LENGTH and name.lower() == ENCODING:
                return None
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    def keep_waiting(self) -> bool:
        if self.complete or self.error is not None or self.is_paused or self._connection is None:
            return False
        self._connection.await_data(self.idle)
        return True

    async def answered(self, timeouts: Timeouts) -> UpstreamResponse:
        if self._connection is not None:
            await self._connection.head_of(self, timeouts)
        return decompressed(self, self.host)
