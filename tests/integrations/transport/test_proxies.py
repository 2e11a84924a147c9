"""Tests the transport that the factory makes, and the way that a request takes."""

from __future__ import annotations

import pytest

from integrations.transport.aiohttp_client import AiohttpTransport
from integrations.transport.factory import create_transport
from integrations.transport.pool import PooledTransport
from integrations.transport.proxies import proxies_from_environment
from integrations.transport.request_head import Origin
from tests.fakes.raw_server import Peer, Received, answer, answering, raw_server
from tests.integrations.transport.requests import fetch

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)


async def test_create_transport__without_proxies__is_the_configured_kind() -> None:
    assert isinstance(create_transport(), PooledTransport)
    assert isinstance(create_transport("aiohttp"), AiohttpTransport)


async def test_create_transport__unknown_kind__is_refused() -> None:
    with pytest.raises(ValueError, match="carrier-pigeon"):
        create_transport("carrier-pigeon")


@pytest.mark.parametrize("kind", ["pool", "aiohttp"])
async def test_send__origin_behind_a_proxy__goes_through_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Received] = []

    async def proxy(peer: Peer) -> None:
        while True:
            seen.append(await peer.read_request())
            await peer.send(answer(b"by proxy"))

    async with raw_server(proxy) as through, raw_server(answering(answer(b"direct"))) as direct:
        monkeypatch.setenv("HTTP_PROXY", through.url.replace("//", "//me:pw@"))
        monkeypatch.setenv("NO_PROXY", "example.test")
        transport = create_transport(kind)
        assert await fetch(transport, "http://upstream.test/v1/chat") == b"by proxy"
        assert await fetch(transport, direct.url) == b"direct"  # A loopback address is reached directly.
        await transport.close()
    assert [request.line for request in seen] == ["POST http://upstream.test/v1/chat HTTP/1.1"]
    assert seen[0].headers["host"] == "upstream.test"
    assert seen[0].headers["proxy-authorization"] == "Basic bWU6cHc="


@pytest.mark.parametrize("kind", ["pool", "aiohttp"])
async def test_send__secure_origin_behind_a_proxy__opens_a_tunnel(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    async def proxy(peer: Peer) -> None:
        lines.append((await peer.read_head())[0])
        await peer.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

    async with raw_server(proxy) as server:
        monkeypatch.setenv("HTTPS_PROXY", server.url)
        transport = create_transport(kind)
        with pytest.raises(Exception, match=r"^No connection to upstream\.test$"):
            await fetch(transport, "https://upstream.test/v1/chat?key=s")
        await transport.close()
    assert lines == ["CONNECT upstream.test:443 HTTP/1.1"]


def test_proxies__by_origin__follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", ".internal.test,10.0.0.1,ported.test:8443")
    proxy_for = proxies_from_environment()
    assert proxy_for(Origin("https", "api.openai.test", 443)) == "http://proxy.test:3128"
    assert proxy_for(Origin("http", "api.openai.test", 80)) is None
    assert proxy_for(Origin("https", "llm.internal.test", 443)) is None
    assert proxy_for(Origin("https", "10.0.0.1", 443)) is None
    assert proxy_for(Origin("https", "ported.test", 8443)) is None
    assert proxy_for(Origin("https", "ported.test", 443)) == "http://proxy.test:3128"
    for loopback in ("localhost", "127.0.0.1", "127.9.9.9", "::1"):
        assert proxy_for(Origin("https", loopback, 443)) is None
