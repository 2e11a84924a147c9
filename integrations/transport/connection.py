from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import cast

import httptools

from integrations.providers.errors import ProviderError
from integrations.transport import failures
from integrations.transport.base import Sending, Timeouts
from integrations.transport.idle import IdleAges, keep_alive_timeout, look_for_end
from integrations.transport.request_head import Origin
from integrations.transport.response import PooledResponse, WatchedResponse

HIGH_WATER_BYTES = 256 * 1024
"""The maximum number of unread body bytes; above it the connection stops reading."""

MAX_OVERHEAD_BYTES = 64 * 1024
"""The maximum number of bytes of heads, chunk extensions and trailers in a row without a byte of body."""

# A larger body is not copied behind its head.
_JOIN_BYTES = 32 * 1024
_NEVER = float("inf")
_JUST_NOW_SECONDS = 0.005


class SurplusAnswerError(Exception):
    pass


class Connection(asyncio.Protocol):
    """Serves one exchange at a time. `on_free` and `on_lost` notify its pool; `ages` knows how long it may lie idle.

    One coarse timer serves all phases: a new deadline is a stored number, and the timer is set again only if it would
    otherwise fire too late.
    """

    def __init__(
        self, origin: Origin, loop: asyncio.AbstractEventLoop, ages: IdleAges, on_lost: Callable[[Connection], None]
    ) -> None:
        self.origin = origin
        self.host = origin.host
        self.reusable = True
        self._loop = loop
        self._ages = ages
        self._idle_since = _NEVER
        # `_idled` is how long the connection was idle before the current exchange; it is negative before the first one
        # ends.
        self._idled = -1.0
        self._look: Callable[[int], list[tuple[int, int]]] | None = None
        self._ended_here = False
        self._on_lost = on_lost
        self._on_free: Callable[[Connection], None] | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: PooledResponse | None = None
        self._interim = False
        self._overhead = 0
        self._phase_seconds = 0.0
        self._deadline = _NEVER
        self._timer_at = _NEVER
        self._timer: asyncio.TimerHandle | None = None

    # The following methods are called by the pool.

    @property
    def alive(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def take(self, now: float) -> bool:
        """Returns True if an idle connection may serve once more; otherwise it is closed. `now` is a time of the
        monotonic clock. Nothing has been written yet, so another connection may serve instead."""
        transport = self._transport
        if transport is None or transport.is_closing() or self._look is None:
            return False
        ages, age = self._ages, now - self._idle_since
        self._idled = age
        if now < self._deadline and age < ages.limit:
            # The event loop has reported everything from before this turn. The socket itself is checked only after a
            # longer idle time, and for peers that may end every connection right after the answer.
            if (age < _JUST_NOW_SECONDS and age <= ages.served) or not self._look(0):
                return True
            ages.ended(age, now)
        self.abort()
        return False

    async def exchange(
        self,
        head: bytes,
        body: bytes,
        timeouts: Timeouts,
        on_free: Callable[[Connection], None],
        sending: Sending | None = None,
    ) -> PooledResponse:
        response = PooledResponse(self, self._loop, timeouts.idle)
        self._begin(response, head, body, on_free)
        if sending is not None:
            sending.is_written = True
        await self.head_of(response, timeouts)
        return response

    def begin(
        self,
        head: bytes,
        body: bytes,
        timeouts: Timeouts,
        on_free: Callable[[Connection], None],
        on_news: Callable[[], None],
    ) -> WatchedResponse:
        response = WatchedResponse(self, self._loop, timeouts.idle)
        response.on_news = on_news
        self._begin(response, head, body, on_free)
        self.await_data(timeouts.first_byte)
        return response

    async def head_of(self, response: PooledResponse, timeouts: Timeouts) -> None:
        try:
            while not response.status:
                if response.error is not None:
                    raise response.error
                await response.wait(timeouts.first_byte)
        except BaseException:
            # The exchange was cancelled or failed, and closing the connection shows that to the peer at once.
            self.abort()
            raise

    def abort(self) -> None:
        self._ended_here = True
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: ProviderError) -> None:
        if self._response is not None:
            self._response.fail(error)
        self.abort()

    # The following methods are called by the response.

    def await_data(self, seconds: float) -> None:
        # A deadline of a cancelled read stays valid, since silence is measured from the last byte.
        if self._deadline is _NEVER:
            self._phase_seconds = seconds
            self._set_deadline(self._loop.time() + seconds)

    def stop_waiting(self) -> None:
        self._deadline = _NEVER

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def finish(self, response: PooledResponse) -> None:
        transport = self._transport
        if response is not self._response or transport is None:
            return
        self._response = None
        # The request may have unsent bytes, since the peer answered early and may never read them.
        seconds = self._idle_seconds(response)
        if seconds <= 0 or transport.is_closing() or transport.get_write_buffer_size():
            self.abort()
            return
        if response.is_paused:
            response.is_paused = False
            self.resume()
        if self._idled > self._ages.served:
            self._ages.served = self._idled
        now = self._idle_since = time.monotonic()
        self._set_deadline(now + seconds)
        if self._on_free is not None:
            self._on_free(self)

    # The following methods are called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._look = look_for_end(sock.fileno())

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None or response.complete:
            # The peer sent bytes without a request, from which the next answer could not be told apart, so the
            # connection is not used again.
            self.reusable = False
            if response is None:
                # The bytes are mostly a last answer before closing, such as a 408.
                self._learn(None)
                self.abort()
            return
        response.touched = True
        self._overhead += len(data)
        had_head = response.status
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.reusable = False
            if response.complete:
                self._wake(response)
            else:
                self.fail(failures.cut_short(self.host) if response.status else failures.not_http(self.host))
            return
        if self._overhead > MAX_OVERHEAD_BYTES and not response.complete:
            self.fail(failures.not_http(self.host))
        # One call for all that has arrived: the parser's callbacks, which set these attributes, wake nobody.
        is_handed_over = response.take is not None
        if is_handed_over and response.pieces:
            # The timer of the wait goes on, and only fires later.
            self._deadline = self._loop.time() + response.idle
            response.hand_over()
        has_news = not is_handed_over and (response.pieces or (response.status and not had_head))
        if has_news or response.complete:
            self._wake(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if self._timer is not None:
            self._timer.cancel()
        response = self._response
        if not self._ended_here:
            self._learn(response)
        if response is not None and not response.complete:
            self._end_with_connection(response, exc)
        self._transport = None
        del self._parser  # The parser and its callbacks refer to each other, and deleting it breaks the cycle.
        self._on_lost(self)

    # The following methods are called by httptools.

    def on_message_begin(self) -> None:
        if self._response is None or self._response.complete:
            raise SurplusAnswerError

    def on_header(self, name: bytes, value: bytes) -> None:
        response = self._response
        if response is not None and not response.status:  # Headers after the head are trailers, which are ignored.
            response.raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        response = self._response
        status = self._parser.get_status_code()
        if response is None:
            return
        if status < 200:
            self._interim = True
            response.raw_headers.clear()
            return
        response.status = status

    def on_body(self, data: bytes) -> None:
        response = self._response
        if response is None:
            return
        self._overhead = 0
        response.pieces.append(data)
        if response.take is not None:
            # `hand_over` takes the piece before the next read, which is never larger than what may lie unread.
            return
        response.buffered += len(data)
        if response.buffered > HIGH_WATER_BYTES and not response.is_paused and self._transport is not None:
            response.is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            return
        if self._response is not None:
            self._response.complete = True
            self.reusable = self._parser.should_keep_alive()

    # The following methods are the connection's own steps.

    def _begin(self, response: PooledResponse, head: bytes, body: bytes, on_free: Callable[[Connection], None]) -> None:
        self._response = response
        self._on_free = on_free
        self._overhead = 0
        self._deadline = _NEVER
        self._write(head, body)

    def _write(self, head: bytes, body: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            raise failures.no_answer(self.host)
        if len(body) <= _JOIN_BYTES:
            transport.write(head + body)
        else:
            transport.writelines((head, body))

    def _wake(self, response: PooledResponse) -> None:
        self._deadline = _NEVER
        response.wake()

    def _idle_seconds(self, response: PooledResponse) -> float:
        if not (response.complete and self.reusable):
            return 0.0
        for name, value in response.raw_headers:
            if len(name) == 10 and name.lower() == b"keep-alive" and (seconds := keep_alive_timeout(value)) is not None:
                return min(self._ages.limit, seconds)
        return self._ages.limit

    def _learn(self, response: PooledResponse | None) -> None:
        now = time.monotonic()
        if response is None:
            if self._idle_since is not _NEVER:
                self._ages.ended(now - self._idle_since, now)
        elif not response.touched and self._idled >= 0:
            self._ages.failed(self._idled, now)

    def _end_with_connection(self, response: PooledResponse, exc: Exception | None) -> None:
        if response.error is None and exc is None and response.ends_with_connection:
            response.complete = True
            response.wake()
        elif response.status:
            response.fail(failures.cut_short(self.host))
        else:
            response.fail(failures.no_answer(self.host))

    def _set_deadline(self, when: float) -> None:
        self._deadline = when
        if when < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = when
            self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at = _NEVER
        # The difference is within the clock's resolution: uvloop's timers fire up to a millisecond early.
        if self._deadline > self._loop.time() + 0.002:
            if self._deadline is not _NEVER:
                self._set_deadline(self._deadline)
            return
        response = self._response
        if response is None or response.complete:
            self.abort()
        elif response.status:
            self.fail(failures.idle_timeout(self.host, self._phase_seconds))
        else:
            self.fail(failures.answer_timeout(self.host, self._phase_seconds))
