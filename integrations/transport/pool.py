"""The lean transport: keep-alive connections per origin, the one used last first, parsed by httptools.

It makes no task, session object or timer for a request: a request with this client took 71 µs of CPU, with aiohttp's
166 µs and with pyreqwest 98 µs (`python -m benchmarks.transport` compares it with aiohttp). It can be removed once a
library comes within a tenth of that and passes `tests/integrations/transport`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable

from integrations.providers.base import UpstreamRequest
from integrations.transport import failures
from integrations.transport.addresses import PrivateAddressError
from integrations.transport.base import BegunResponse, Sending, Timeouts, UpstreamResponse
from integrations.transport.connection import Connection
from integrations.transport.decompression import decompressed
from integrations.transport.idle import IdleAges
from integrations.transport.request_head import Origin, RequestHead, head_of
from integrations.transport.resolver import Resolver
from integrations.transport.response import ENCODING, ENCODING_LENGTH
from integrations.transport.tls import client_context

KEEP_ALIVE_SECONDS = 30.0

_REMEMBERED_ORIGINS = 1024


class PooledTransport:
    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        keep_alive: float = KEEP_ALIVE_SECONDS,
        resolver: Resolver | None = None,
    ) -> None:
        self._tls = tls or client_context()
        self._keep_alive = keep_alive
        self._resolver = resolver or Resolver()
        self._idle: dict[Origin, list[Connection]] = {}
        self._ages: dict[Origin, IdleAges] = {}
        self._all: set[Connection] = set()
        self._emptied = asyncio.Event()
        self._closed = False

    async def send(
        self, request: UpstreamRequest, timeouts: Timeouts, sending: Sending | None = None
    ) -> UpstreamResponse:
        head = head_of(request)
        first_bytes = head.with_length(len(request.body))
        connection = self._take(head.origin) or await self._connect(head.origin, timeouts.connect)
        response = await connection.exchange(first_bytes, request.body, timeouts, self._give_back, sending)
        # The headers are not decoded for this, since those of most answers are never read.
        for name, _ in response.raw_headers:
            if len(name) == ENCODING_LENGTH and name.lower() == ENCODING:
                return decompressed(response, head.origin.host)
        return response

    def begin(
        self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]
    ) -> BegunResponse | None:
        connection = self._take(head.origin)
        if connection is None:
            return None
        return connection.begin(head.with_length(len(body)), body, timeouts, self._give_back, on_news)

    async def close(self) -> None:
        self._closed = True
        for connection in list(self._all):
            connection.fail(failures.closed_by_caller(connection.host))
        while self._all:
            self._emptied.clear()
            await self._emptied.wait()

    def _take(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin)
        if idle:
            now = time.monotonic()
            while idle:
                connection = idle.pop()
                if connection.take(now):
                    return connection
        return None

    def _give_back(self, connection: Connection) -> None:
        if self._closed:
            connection.abort()
        else:
            self._idle.setdefault(connection.origin, []).append(connection)

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        idle = self._idle.get(connection.origin)
        if idle is not None:
            if connection in idle:
                idle.remove(connection)
            if not idle:
                del self._idle[connection.origin]
        if not self._all:
            self._emptied.set()

    def _ages_of(self, origin: Origin) -> IdleAges:
        ages = self._ages.get(origin)
        if ages is None:
            if len(self._ages) >= _REMEMBERED_ORIGINS:
                del self._ages[next(iter(self._ages))]
            ages = self._ages[origin] = IdleAges(self._keep_alive)
        ages.look(time.monotonic())
        return ages

    async def _connect(self, origin: Origin, seconds: float) -> Connection:
        if self._closed:
            raise failures.closed_by_caller(origin.host)
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect_to(origin, await self._resolver.addresses(origin.host, origin.port))
        except TimeoutError:
            raise failures.connect_timeout(origin.host, seconds) from None
        except ssl.SSLCertVerificationError as error:
            raise failures.untrusted(origin.host) from error
        except PrivateAddressError:
            raise failures.private_network(origin.host) from None
        except OSError as error:
            raise failures.unreachable(origin.host) from error
        if connection.alive:  # A lost connection must not be added, since nothing would remove it again.
            self._all.add(connection)
        return connection

    async def _connect_to(self, origin: Origin, addresses: list[str]) -> Connection:
        loop = asyncio.get_running_loop()
        ages = self._ages_of(origin)
        failed: OSError = OSError("no address")
        for address in addresses:
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(origin, loop, ages, self._forget),
                    address,
                    origin.port,
                    ssl=self._tls if origin.secure else None,
                    server_hostname=origin.host if origin.secure else None,
                )
            except ssl.SSLError:
                raise
            except OSError as error:
                failed = error
            else:
                return connection
        raise failed
