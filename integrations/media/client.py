from __future__ import annotations

import asyncio
import contextlib
import ssl
from concurrent.futures import ThreadPoolExecutor

import aiohttp

from integrations.media.target import Target
from integrations.transport.addresses import PrivateAddressError, is_plainly_private
from integrations.transport.proxies import ProxyFor
from integrations.transport.resolver import AiohttpResolver, Lookup, Resolver, any_address, blocking_lookup, only_public
from integrations.transport.tls import client_context

_THREADS = 4
_CONNECT_SECONDS = 5.0
# No compression is accepted, since a few compressed bytes could expand without limit.
_HEADERS = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "prompt-gateway"}


class OwnLookup:
    """Resolves names that clients choose in threads of its own: a name server that never answers blocks a thread for
    long, and in the event loop's few default threads it would delay every new connection to a provider."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="media-names")

    async def __call__(self, host: str, port: int) -> list[str]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, blocking_lookup, host, port)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class MediaClient:
    def __init__(
        self, *, allow_private: bool, proxy_for: ProxyFor, tls: ssl.SSLContext | None, lookup: Lookup | None
    ) -> None:
        self._allow_private = allow_private
        self._proxy_for = proxy_for
        self._own_lookup = OwnLookup()
        self._resolver = Resolver(any_address if allow_private else only_public, lookup or self._own_lookup)
        self._names = AiohttpResolver(self._resolver)
        self._session = aiohttp.ClientSession(
            # The connector caches no names, since each connection must go to an address that was checked for it.
            connector=aiohttp.TCPConnector(
                limit=0, ssl=tls or client_context(), force_close=True, use_dns_cache=False, resolver=self._names
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )

    async def get(self, target: Target) -> aiohttp.ClientResponse:
        return await self._session.get(
            target.url, headers=_HEADERS, allow_redirects=False, proxy=await self._way_to(target)
        )

    async def close(self) -> None:
        await self._session.close()
        self._own_lookup.close()

    async def _way_to(self, target: Target) -> str | None:
        origin = target.origin
        if not self._allow_private and is_plainly_private(origin.host):
            raise PrivateAddressError(origin.host)
        proxy = self._proxy_for(origin)
        if proxy is not None:
            self._names.trust(proxy)
            with contextlib.suppress(OSError):  # A name that only the proxy can resolve is no error.
                await self._resolver.addresses(origin.host, origin.port)
        return proxy
