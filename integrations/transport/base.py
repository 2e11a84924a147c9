"""The interface between the gateway and an upstream HTTP client; clients are interchangeable behind it.

A transport lives as long as its worker. It has pooled keep-alive connections and TCP_NODELAY, and no cookies or
redirects. It sends `accept-encoding: identity`, and still decompresses compressed answers (`decompression`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Protocol

from integrations.providers.base import UpstreamRequest
from integrations.transport.request_head import RequestHead


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds. `first_byte` runs from the end of the request to the response's head, `idle` between two reads of the
    body."""

    connect: float = 5.0
    first_byte: float = 120.0
    idle: float = 120.0


class UpstreamResponse(Protocol):
    """A response whose head has arrived. It must always be closed; closing it before the end drops the connection at
    once."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names are in lower case; the last of repeated headers counts."""
        ...

    async def read(self, *, limit: int, until: float = inf) -> bytes:
        """Returns the whole body. Raises ProviderError(UNUSABLE) above `limit` bytes, (UNAVAILABLE) if it is cut short,
        (TIMEOUT) if data still arrives after `until` on the monotonic clock."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives, in pieces of any size, none empty; reads no faster than the caller."""
        ...

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        """Calls `take` with pieces of the body as soon as they arrive, without a turn of this coroutine. Returns True
        at the end of the body, and False once `take` has returned False; the rest waits for the next call.

        Raises what `take` raises, and the same failures as `chunks`.
        """
        ...

    def close(self) -> None:
        """Returns a fully read connection to the pool, aborts any other. Safe to call twice, never blocks."""
        ...


class Sending(Protocol):
    is_written: bool
    """True once the first byte of the request was written."""


class BegunResponse(UpstreamResponse, Protocol):
    """A response to a written request; `status` is 0 until its head has arrived. While `on_news` is set, it is called
    whenever more has arrived, and when the response is complete or has failed. Once it is None, the response is awaited
    like any other."""

    on_news: Callable[[], None] | None
    complete: bool
    buffered: int
    """The bytes of the body that have arrived and are not read."""

    def body(self) -> bytes | None:
        """Returns the body of a complete response without consuming it; None if it is compressed."""
        ...

    async def answered(self, timeouts: Timeouts) -> UpstreamResponse: ...

    def keep_waiting(self) -> bool:
        """Starts the timeout of the wait for more of the response. Returns False if waiting is pointless: it is
        complete, it has failed, or what has arrived has to be read first."""
        ...


class Transport(Protocol):
    async def send(
        self, request: UpstreamRequest, timeouts: Timeouts, sending: Sending | None = None
    ) -> UpstreamResponse:
        """Returns the response, and sets `sending.is_written` on the way. Raises ProviderError: UNAVAILABLE without a
        connection or after a reset, TIMEOUT when a phase took too long.

        The request is written once at most. An idle connection that turns out to be closed is replaced before writing;
        if a connection closes after the first byte was written, the peer may have read the request, and the call fails.
        """
        ...

    def begin(
        self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]
    ) -> BegunResponse | None:
        """Writes a request at once if an idle connection can take it; otherwise writes nothing and returns None."""
        ...

    async def close(self) -> None: ...
