"""Tests the certificate authorities that the transports trust."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import Transport
from integrations.transport.factory import create_transport
from tests.fakes.raw_server import Peer, answer, answering, answering_once, raw_server
from tests.integrations.transport.conftest import NewTransport
from tests.integrations.transport.requests import fetch
from tests.waiting import TIMEOUT_SECONDS, eventually


async def test_tls__trusted_certificate__is_used_and_kept(
    new_transport: NewTransport, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    transport = new_transport(tls=client_tls)
    async with raw_server(answering(answer(bytes(300_000))), tls=server_tls) as server:
        for _ in range(3):
            assert await fetch(transport, server.url, bytes(300_000)) == bytes(300_000)
        assert server.connections == 1
        await transport.close()


async def test_tls__certificate_for_another_host__is_refused(
    new_transport: NewTransport, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.test").configure_cert(context)
    await _assert_untrusted(new_transport(tls=client_tls), context)


async def test_tls__authority_unknown__is_refused(new_transport: NewTransport, client_tls: ssl.SSLContext) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    await _assert_untrusted(new_transport(tls=client_tls), context)


async def test_tls__default_trust__does_not_include_a_private_authority(
    new_transport: NewTransport, server_tls: ssl.SSLContext
) -> None:
    await _assert_untrusted(new_transport(), server_tls)


async def _assert_untrusted(transport: Transport, context: ssl.SSLContext) -> None:
    async with raw_server(answering(answer()), tls=context) as server:
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url)
        assert caught.value.kind is FailureKind.UNAVAILABLE
        assert caught.value.message == "No secure connection to localhost: certificate not trusted"
        await transport.close()


@pytest.mark.parametrize("kind", ["pool", "aiohttp"])
async def test_tls__authority_named_in_the_environment__is_trusted(
    kind: str, authority: trustme.CA, server_tls: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "authorities.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    transport = create_transport(kind)
    async with raw_server(answering(answer()), tls=server_tls) as server:
        assert await fetch(transport, server.url) == b"hello"
        await transport.close()


async def test_tls__server_name_and_protocol__are_announced(
    new_transport: NewTransport, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    names: list[str | None] = []
    protocols: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    context.sni_callback = lambda sock, name, of: names.append(name)
    client_tls.set_alpn_protocols(["http/1.1"])

    async def script(peer: Peer) -> None:
        protocols.append(peer.writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await peer.read_request()
        await peer.send(answer())

    transport = new_transport(tls=client_tls)
    async with raw_server(script, tls=context) as server:
        await fetch(transport, server.url)
        await transport.close()
    assert (names, protocols) == (["localhost"], ["http/1.1"])


async def test_tls__body_cut_short__is_unavailable(
    new_transport: NewTransport, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    transport = new_transport(tls=client_tls)
    async with raw_server(answering_once(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi"), tls=server_tls) as server:
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url)
        assert caught.value.kind is FailureKind.UNAVAILABLE
        await transport.close()


async def test_tls__stream_closed__hangs_up_at_once(
    new_transport: NewTransport, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.hung_up()

    transport = new_transport(tls=client_tls)
    async with raw_server(script, tls=server_tls) as server:
        sending = asyncio.ensure_future(fetch(transport, server.url))
        await eventually(lambda: bool(server.peers))
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(server.peers[0].gone.wait(), TIMEOUT_SECONDS)
        await transport.close()
