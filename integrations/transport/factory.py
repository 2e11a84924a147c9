from __future__ import annotations

import ssl
from collections.abc import Callable

from integrations.providers.base import UpstreamRequest
from integrations.transport.aiohttp_client import AiohttpTransport
from integrations.transport.base import BegunResponse, Sending, Timeouts, Transport, UpstreamResponse
from integrations.transport.pool import PooledTransport
from integrations.transport.proxies import ProxyFor, no_proxy, proxies_from_environment
from integrations.transport.request_head import RequestHead, head_of
from integrations.transport.resolver import Lookup, Resolver, any_address, as_named, system_lookup
from integrations.transport.tls import client_context


def create_transport(
    kind: str = "pool",
    *,
    tls: ssl.SSLContext | None = None,
    allow_private: bool = False,
    lookup: Lookup = system_lookup,
) -> Transport:
    """`kind` is `pool` or `aiohttp`. Reads proxies and trusted authorities from the environment, once.

    Unless `allow_private`, no connection goes to a public name's private address. For a request through a proxy the
    proxy decides, since it resolves the name.
    """
    context = tls or client_context()
    resolver = Resolver(any_address if allow_private else as_named, lookup)
    proxy_for = proxies_from_environment()
    if kind == "aiohttp":
        return AiohttpTransport(tls=context, proxy_for=proxy_for, resolver=resolver)
    if kind != "pool":
        raise ValueError(f"Unknown transport {kind!r}: expected pool or aiohttp")
    if proxy_for is no_proxy:
        return PooledTransport(tls=context, resolver=resolver)
    return ProxyAwareTransport(
        PooledTransport(tls=context, resolver=resolver),
        AiohttpTransport(tls=context, proxy_for=proxy_for, resolver=resolver),
        proxy_for,
    )


class ProxyAwareTransport:
    def __init__(self, direct: Transport, proxied: Transport, proxy_for: ProxyFor) -> None:
        self._direct = direct
        self._proxied = proxied
        self._proxy_for = proxy_for

    async def send(
        self, request: UpstreamRequest, timeouts: Timeouts, sending: Sending | None = None
    ) -> UpstreamResponse:
        behind_proxy = self._proxy_for(head_of(request).origin) is not None
        return await (self._proxied if behind_proxy else self._direct).send(request, timeouts, sending)

    def begin(
        self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]
    ) -> BegunResponse | None:
        if self._proxy_for(head.origin) is not None:
            return None
        return self._direct.begin(head, body, timeouts, on_news)

    async def close(self) -> None:
        await self._direct.close()
        await self._proxied.close()
