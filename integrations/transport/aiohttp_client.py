"""The reference transport: aiohttp, with one session per worker. It also serves requests through HTTP proxies.

`trust_env` stays off although proxies come from the environment: with it aiohttp also reads ~/.netrc and would replace
a provider's key by an entry there.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, BinaryIO
from weakref import WeakSet

import aiohttp
from yarl import URL

from integrations.providers.base import UploadRequest, UpstreamRequest
from integrations.providers.errors import ProviderError
from integrations.transport import failures
from integrations.transport.addresses import PrivateAddressError
from integrations.transport.base import Sending, Timeouts, UpstreamResponse
from integrations.transport.decompression import decompressed
from integrations.transport.idle import keep_alive_timeout, look_for_end
from integrations.transport.proxies import ProxyFor, no_proxy
from integrations.transport.request_head import Origin, RequestHead, head_of
from integrations.transport.resolver import AiohttpResolver, Resolver
from integrations.transport.tls import client_context

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_HEADER_BYTES = 64 * 1024
_LARGE_BODY_BYTES = 512 * 1024
# Idle connections are closed after four seconds, below the time of common servers and proxies (five seconds), since
# aiohttp does not report how long a connection was idle.
_KEEP_ALIVE_SECONDS = 4.0
_REMEMBERED_ORIGINS = 1024

_FAILED = (aiohttp.ClientError, PrivateAddressError, TimeoutError, OSError)
_BROKEN = (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError, OSError)


class AiohttpResponse(AsyncIterator[bytes]):
    """A cancelled read loses nothing and may be repeated."""

    def __init__(self, response: aiohttp.ClientResponse, host: str, idle: float) -> None:
        self._response = response
        self._host = host
        self._idle = idle
        self._closed = False
        self._deadline: float | None = None
        self._headers: dict[str, str] | None = None
        connection = response.connection
        if connection is not None and connection.protocol is not None:
            # Until the head had arrived aiohttp's read timeout was the timeout for the first byte. It is not enough for
            # the body, since it stops when the framing breaks, and then the reader would wait without end.
            connection.protocol.read_timeout = None
            connection.protocol.start_timeout()

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            self._headers = {name.lower(): value for name, value in self._response.headers.items()}
        return self._headers

    async def read(self, *, limit: int, until: float = inf) -> bytes:
        if (self._response.content_length or 0) > limit:
            self.close()
            raise failures.too_large(self._host, limit)
        received = bytearray()
        async for piece in self:
            received += piece
            if len(received) > limit:
                self.close()
                raise failures.too_large(self._host, limit)
            if time.monotonic() > until:
                self.close()
                raise failures.too_slow(self._host)
        return bytes(received)

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        async for data in self:
            if not take(data):
                return False
        return True

    async def __anext__(self) -> bytes:
        if self._closed:
            raise StopAsyncIteration if self._response.content.at_eof() else failures.closed_by_caller(self._host)
        if self._deadline is None:
            # The deadline outlives a cancelled read, since silence is measured from the last byte.
            self._deadline = asyncio.get_running_loop().time() + self._idle
        try:
            async with asyncio.timeout_at(self._deadline):
                data = await self._response.content.readany()
        except TimeoutError:
            self.close()
            raise failures.idle_timeout(self._host, self._idle) from None
        except _BROKEN as error:
            raise failures.cut_short(self._host) from error
        self._deadline = None
        if not data:
            self.close()
            raise StopAsyncIteration
        return data

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._response.content.at_eof():
            self._response.release()
        else:
            connection = self._response.connection
            if connection is not None and connection.transport is not None:
                connection.transport.abort()
            self._response.close()


class AiohttpTransport:
    """Bound to the event loop on which it sends first. `proxy_for` returns the proxy of an origin."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        keep_alive: float = _KEEP_ALIVE_SECONDS,
        proxy_for: ProxyFor = no_proxy,
        resolver: Resolver | None = None,
    ) -> None:
        self._tls = tls or client_context()
        self._keep_alive = keep_alive
        self._proxy_for = proxy_for
        self._resolver = AiohttpResolver(resolver or Resolver())
        self._keeping: aiohttp.ClientSession | None = None
        self._closing: aiohttp.ClientSession | None = None
        self._short_lived: set[Origin] = set()
        self._closed = False

    async def send(
        self, request: UpstreamRequest, timeouts: Timeouts, sending: Sending | None = None
    ) -> UpstreamResponse:
        head = head_of(request)
        if self._closed:
            raise failures.closed_by_caller(head.origin.host)
        try:
            response = await self._exchange(self._session_for(head.origin), request, head, timeouts, sending)
        except _FAILED as error:
            # The cause is left out, since aiohttp's exceptions print the whole URL.
            raise _failure(error, head, timeouts) from None
        return decompressed(response, head.origin.host)

    def begin(self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]) -> None:
        """Never begins: aiohttp has to be awaited."""

    async def close(self) -> None:
        self._closed = True
        for session in (self._keeping, self._closing):
            if session is not None:
                await session.close()

    async def _exchange(
        self,
        session: aiohttp.ClientSession,
        request: UpstreamRequest,
        head: RequestHead,
        timeouts: Timeouts,
        sending: Sending | None,
    ) -> AiohttpResponse:
        origin = head.origin
        proxy = self._proxy_for(origin)
        if proxy is not None:
            self._resolver.trust(proxy)
        response = await session.request(
            request.method,
            URL(f"{origin.scheme}://{head.headers['host']}{head.target}", encoded=True),
            headers=head.headers,
            data=_body_of(request),
            allow_redirects=False,
            proxy=proxy,
            trace_request_ctx=sending,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect, sock_read=timeouts.first_byte),
        )
        self._note_keep_alive(origin, response.headers.get("keep-alive"))
        return AiohttpResponse(response, origin.host, timeouts.idle)

    def _note_keep_alive(self, origin: Origin, keep_alive: str | None) -> None:
        """Remembers an origin that keeps connections for a shorter time than this client, so that they are closed and
        not reused."""
        if keep_alive is None:
            return
        seconds = keep_alive_timeout(keep_alive.encode("latin-1", "replace"))
        if seconds is not None and seconds < self._keep_alive and len(self._short_lived) < _REMEMBERED_ORIGINS:
            self._short_lived.add(origin)

    def _session_for(self, origin: Origin) -> aiohttp.ClientSession:
        if origin in self._short_lived:
            self._closing = self._closing or self._new_session(force_close=True)
            return self._closing
        self._keeping = self._keeping or self._new_session(force_close=False)
        return self._keeping

    def _new_session(self, *, force_close: bool) -> aiohttp.ClientSession:
        connector = _Connector(
            limit=0,
            ssl=self._tls,
            force_close=force_close,
            keepalive_timeout=None if force_close else self._keep_alive,
            ttl_dns_cache=60,
            resolver=self._resolver,
            happy_eyeballs_delay=None,
        )
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_note_written)
        return aiohttp.ClientSession(
            connector=connector,
            trace_configs=[tracing],
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("content-type",),
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )


def _body_of(request: UpstreamRequest) -> bytes | BinaryIO:
    """Passes a large body as a stream: aiohttp writes large bytes in one piece and warns about it."""
    if isinstance(request, UploadRequest):
        return request.file
    return request.body if len(request.body) <= _LARGE_BODY_BYTES else io.BytesIO(request.body)


async def _note_written(session: aiohttp.ClientSession, trace: Any, _: Any) -> None:
    if trace.trace_request_ctx is not None:
        trace.trace_request_ctx.is_written = True


class _Connector(aiohttp.TCPConnector):
    """Gives out no kept connection that its peer has ended, even if the event loop has not noticed yet: aiohttp would
    write the request to it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[asyncio.BaseProtocol] = WeakSet()

    async def connect(self, *args: Any, **options: Any) -> Connection:
        while True:
            connection = await super().connect(*args, **options)
            protocol, transport = connection.protocol, connection.transport
            if protocol not in self._used or (transport is not None and not _has_ended(transport)):
                break
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        return connection


def _has_ended(transport: asyncio.BaseTransport) -> bool:
    sock = transport.get_extra_info("socket")
    return transport.is_closing() or (sock is not None and bool(look_for_end(sock.fileno())(0)))


def _failure(error: Exception, head: RequestHead, timeouts: Timeouts) -> ProviderError:
    host = head.origin.host
    if isinstance(error, PrivateAddressError):
        return failures.private_network(host)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return failures.connect_timeout(host, timeouts.connect)
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return failures.answer_timeout(host, timeouts.first_byte)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return failures.untrusted(host)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return failures.unreachable(host)
    if isinstance(error, aiohttp.ClientResponseError):
        return failures.not_http(host)
    return failures.no_answer(host)
