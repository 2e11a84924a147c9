"""Which transport a worker uses: the lean pool for what is reached directly, aiohttp for what stands behind a proxy."""

from __future__ import annotations

import ssl

from integrations.providers.base import UpstreamRequest
from integrations.transport.aiohttp_client import AiohttpTransport
from integrations.transport.base import Timeouts, Transport, UpstreamResponse
from integrations.transport.pool import PooledTransport
from integrations.transport.proxies import ProxyFor, no_proxy, proxies_from_environment
from integrations.transport.request_head import head_of
from integrations.transport.tls import client_context


def create_transport(kind: str = "pool", *, tls: ssl.SSLContext | None = None) -> Transport:
    """`pool` or `aiohttp`. Proxies and trusted authorities are read from the environment here, once."""
    context = tls or client_context()
    proxy_for = proxies_from_environment()
    if kind == "aiohttp":
        return AiohttpTransport(tls=context, proxy_for=proxy_for)
    if kind != "pool":
        raise ValueError(f"Unknown transport {kind!r}: expected pool or aiohttp")
    if proxy_for is no_proxy:
        return PooledTransport(tls=context)
    return ProxyAwareTransport(
        PooledTransport(tls=context), AiohttpTransport(tls=context, proxy_for=proxy_for), proxy_for
    )


class ProxyAwareTransport:
    """Chooses by origin."""

    def __init__(self, direct: Transport, proxied: Transport, proxy_for: ProxyFor) -> None:
        self._direct = direct
        self._proxied = proxied
        self._proxy_for = proxy_for

    async def send(self, request: UpstreamRequest, timeouts: Timeouts) -> UpstreamResponse:
        behind_proxy = self._proxy_for(head_of(request).origin) is not None
        return await (self._proxied if behind_proxy else self._direct).send(request, timeouts)

    async def close(self) -> None:
        await self._direct.close()
        await self._proxied.close()
