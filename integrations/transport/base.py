"""The one interface to the network behind which upstream HTTP clients are interchangeable.

A transport lives as long as its worker: pooled keep-alive connections, TCP_NODELAY, no cookies, no redirects, no
decompression surprises (it sends `accept-encoding: identity`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Protocol

from integrations.providers.base import UpstreamRequest


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `first_byte` runs from the request sent to the response head; `idle` between two reads of the body."""

    connect: float = 5.0
    first_byte: float = 120.0
    idle: float = 120.0


class UpstreamResponse(Protocol):
    """A response whose head has arrived. Always `close()` it; closing before the end drops the connection at once."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; of repeated headers the last."""
        ...

    async def read(self, *, limit: int, until: float = inf) -> bytes:
        """The whole body. Raises ProviderError(UNUSABLE) above `limit` bytes, (UNAVAILABLE) when it is cut short,
        (TIMEOUT) when more comes after `until` on the monotonic clock."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, in pieces of any size, none empty; reads no faster than the caller."""
        ...

    def close(self) -> None:
        """Returns a fully read connection to the pool, aborts any other. Safe to call twice, never blocks."""
        ...


class Transport(Protocol):
    async def send(self, request: UpstreamRequest, timeouts: Timeouts) -> UpstreamResponse:
        """Raises ProviderError: UNAVAILABLE when no connection or a reset, TIMEOUT when a phase took too long.

        The request is written once at most. An idle connection that is found to be closed before is replaced; when one
        closes after the first byte was written, nobody can tell whether the peer has read it, and the call has failed.
        """
        ...

    async def close(self) -> None: ...
