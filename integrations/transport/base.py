"""The interface between the gateway and an upstream HTTP client, behind which clients are interchangeable.

A transport lives as long as its worker. It has pooled keep-alive connections and TCP_NODELAY, and no cookies or
redirects. It sends `accept-encoding: identity`, and decompresses what comes compressed all the same (`decompression`).
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
    """The timeouts of a request in seconds. `first_byte` runs from the end of the request to the response's head;
    `idle` between two reads of the body."""

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
        """Returns the headers with names in lower case; the last of repeated headers counts."""
        ...

    async def read(self, *, limit: int, until: float = inf) -> bytes:
        """Returns the whole body. Raises ProviderError(UNUSABLE) above `limit` bytes, (UNAVAILABLE) when it is cut
        short, (TIMEOUT) when data still arrives after `until` on the monotonic clock."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives, in pieces of any size, none empty; reads no faster than the caller."""
        ...

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        """Calls `take` with what arrives of the body, as soon as it does and without a turn of this coroutine. Returns
        True at the end of the body, and False when `take` has returned False; the rest waits for the next call.

        Raises what `take` raises, and the same failures as `chunks`.
        """
        ...

    def close(self) -> None:
        """Returns a fully read connection to the pool, aborts any other. Safe to call twice, never blocks."""
        ...


class Sending(Protocol):
    """The caller's view of a request on its way."""

    is_written: bool
    """True once the first byte of the request was written."""


class BegunResponse(UpstreamResponse, Protocol):
    """A response to a request that was written; its head may not have arrived yet, and `status` is 0 then. While
    `on_news` is set, it is called whenever more has arrived, and when the response is complete or has failed; once it
    is None, the response is awaited like any other."""

    on_news: Callable[[], None] | None
    complete: bool
    buffered: int
    """The bytes of the body that have arrived and are not read."""

    def body(self) -> bytes | None:
        """Returns the body of a response that is complete, and leaves it there; None where it is compressed."""
        ...

    async def answered(self, timeouts: Timeouts) -> UpstreamResponse:
        """Returns the response once its head has arrived. Raises what `Transport.send` raises."""
        ...

    def keep_waiting(self) -> bool:
        """Starts the timeout of the wait for more of the response. Returns False where waiting is pointless: it is
        complete, it has failed, or what has arrived has to be read first."""
        ...


class Transport(Protocol):
    async def send(
        self, request: UpstreamRequest, timeouts: Timeouts, sending: Sending | None = None
    ) -> UpstreamResponse:
        """Returns the response, and sets `sending.is_written` on the way. Raises ProviderError: UNAVAILABLE without a
        connection or after a reset, TIMEOUT when a phase took too long.

        The request is written once at most. An idle connection that turns out to be closed is replaced before writing;
        when a connection closes after the first byte was written, nobody can know whether the peer has read the
        request, and the call has failed.
        """
        ...

    def begin(
        self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]
    ) -> BegunResponse | None:
        """Writes a request at once where an idle connection can take it; returns None, and has written nothing, where
        that has to be waited for."""
        ...

    async def close(self) -> None: ...
