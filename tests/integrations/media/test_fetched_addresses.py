"""Tests that files are fetched from public addresses only, behind redirects and through proxies too."""

from __future__ import annotations

import ssl

import pytest
import trustme

from integrations.media import MediaFetcher
from integrations.media.fetcher import MAX_REDIRECTS
from integrations.transport.request_head import Origin
from tests.fakes.raw_server import Peer, Script, answer, answering, raw_server
from tests.integrations.media.exchanges import PNG, STRICT, NewFetcher, problem_of
from tests.integrations.names import Names
from tests.tables.cases import tabled


def redirecting(*locations: str) -> Script:
    """Answers each path `/0`, `/1` … with the redirect of that number, and every other path with a picture."""

    async def script(peer: Peer) -> None:
        while True:
            path = (await peer.read_request()).line.split()[1]
            number = path.removeprefix("/").partition("?")[0]
            if number.isdigit() and int(number) < len(locations):
                location = locations[int(number)].encode()
                await peer.send(b"HTTP/1.1 302 Found\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % location)
            else:
                await peer.send(answer(PNG))

    return script


@tabled
async def test_fetch__private_address__refused(url: str, new_fetcher: NewFetcher) -> None:
    names = Names(**{"private_example_com": [["10.0.0.1"]], "both-private_example_com": [["::1", "127.0.0.1"]]})
    message = await problem_of(new_fetcher(STRICT, lookup=names), url)
    assert message.endswith("is on a private network.")
    assert "10.0.0.1:" not in message
    assert set(names.resolved) <= {"private.example.com", "both-private.example.com"}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://example.com/a.png", "http and https only"),
        ("file:///etc/passwd", "http and https only"),
        ("gopher://example.com/", "http and https only"),
        ("data:image/png;base64,AAAA", "http and https only"),
        ("picture.png", "http and https only"),
        ("//example.com/a.png", "http and https only"),
        ("http://", "valid host"),
        ("http:///a.png", "valid host"),
        ("http://exa mple.com/", "valid host"),
        ("http://example.com%00.evil.com/", "valid host"),
        ("http://[fe80::1%25eth0]/", "valid host"),
        ("http://user:secret@example.com/a.png", "credentials"),
        ("http://example.com:port/", "malformed"),
        ("http://example.com:99999/", "malformed"),
        ("http://[::1/", "malformed"),
        ("http://example.com/" + "a" * 9000, "malformed"),
    ],
)
async def test_fetch__no_address_to_fetch_from__refused(url: str, problem: str, new_fetcher: NewFetcher) -> None:
    names = Names()
    message = await problem_of(new_fetcher(STRICT, lookup=names), url)
    assert problem in message
    assert "secret" not in message
    assert names.resolved == []


async def test_fetch__failure__names_the_host_and_not_the_query(new_fetcher: NewFetcher) -> None:
    message = await problem_of(new_fetcher(STRICT, lookup=Names()), "https://files.example.com/a.png?token=s3cret")
    assert message == "The file at files.example.com cannot be fetched: no connection."


@pytest.mark.usefixtures("_loopback_is_public")
async def test_fetch__name_that_turns_private__is_looked_up_and_refused_anew(new_fetcher: NewFetcher) -> None:
    names = Names(files_example_com=[["127.0.0.1"], ["169.254.169.254"]])
    async with raw_server(answering(answer(PNG))) as server:
        fetcher = new_fetcher(STRICT, lookup=names)
        url = f"http://files.example.com:{server.port}/a.png"
        await fetcher.fetch([url])
        # The name was resolved once, so that the connection went to the checked address.
        assert names.resolved == ["files.example.com"]
        assert "private network" in await problem_of(fetcher, url)
        assert server.connections == 1


@pytest.mark.usefixtures("_loopback_is_public")
@tabled
async def test_fetch__redirect_to_where_nobody_may_go__refused(
    location: str, problem: str, new_fetcher: NewFetcher
) -> None:
    names = Names(files_example_com=[["127.0.0.1"]], inside_example_com=[["127.0.0.2"]])

    async def script(peer: Peer) -> None:
        assert (await peer.read_request()).line == "GET /start HTTP/1.1"
        target = location.format(port=server.port).encode()
        await peer.send(b"HTTP/1.1 307 Moved\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % target)

    async with raw_server(script) as server:
        fetcher = new_fetcher(STRICT, lookup=names)
        assert problem in await problem_of(fetcher, f"http://files.example.com:{server.port}/start")
        assert server.connections == 1


async def test_fetch__redirects__are_followed_up_to_a_limit(new_fetcher: NewFetcher) -> None:
    async with raw_server(redirecting("/1", "2?x=%20y", "/3", "/4")) as server:
        fetcher = new_fetcher()
        found = await fetcher.fetch([f"{server.url}/1"])
        assert found[f"{server.url}/1"].data == PNG
        message = await problem_of(fetcher, f"{server.url}/0")
        assert message.endswith(f"more than {MAX_REDIRECTS} redirects.")


async def test_fetch__redirect_without_a_location__refused(new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n")) as server:
        assert "redirects" in await problem_of(new_fetcher(), server.url)


async def test_fetch__redirect_from_https_to_http__refused(new_fetcher: NewFetcher) -> None:
    authority = trustme.CA()
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server_tls)
    client_tls = ssl.create_default_context()
    authority.configure_trust(client_tls)
    async with raw_server(redirecting("http://localhost/a.png"), tls=server_tls) as server:
        fetcher = new_fetcher(tls=client_tls)
        assert (await fetcher.fetch([f"{server.url}/a.png"]))[f"{server.url}/a.png"].data == PNG
        assert "from https to http" in await problem_of(fetcher, f"{server.url}/0")
        assert "certificate" in await problem_of(new_fetcher(), f"{server.url}/a.png")


async def test_fetch__through_a_proxy__names_are_checked_all_the_same() -> None:
    names = Names(proxy_example_com=[["127.0.0.1"]], inside_example_com=[["10.0.0.1"]])
    lines: list[str] = []

    async def proxy(peer: Peer) -> None:
        while True:
            lines.append((await peer.read_request()).line)
            await peer.send(answer(PNG))

    async with raw_server(proxy) as server:

        def proxy_for(origin: Origin) -> str:
            return f"http://proxy.example.com:{server.port}"

        fetcher = MediaFetcher(STRICT, proxy_for=proxy_for, lookup=names)
        # One name can be resolved by the proxy only, and the other names must not reach it.
        assert (await fetcher.fetch(["http://files.example.com/a.png"]))["http://files.example.com/a.png"].data == PNG
        for url in ("http://inside.example.com/", "http://intranet/", "http://10.0.0.1/", "http://[::1]/"):
            assert "private network" in await problem_of(fetcher, url)
        await fetcher.close()
    assert lines == ["GET http://files.example.com/a.png HTTP/1.1"]
