"""Tests of fetching files from servers that behave, misbehave and attack."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
import trustme

from integrations.errors import MediaBusyError, MediaError
from integrations.media import MediaFetcher, MediaLimits
from integrations.media import client as media_client
from integrations.media.fetcher import MAX_FILES, MAX_REDIRECTS
from integrations.providers.base import Media
from integrations.transport.proxies import no_proxy
from integrations.transport.request_head import Origin
from integrations.transport.resolver import Lookup
from tests.fakes.raw_server import Peer, Script, answer, answering, eventually, raw_server
from tests.integrations.names import Names
from tests.patience import PATIENCE_SECONDS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
LIMITS = MediaLimits(max_bytes=100_000, request_bytes=250_000, seconds=PATIENCE_SECONDS, allow_private=True)
STRICT = replace(LIMITS, allow_private=False)

NewFetcher = Callable[..., MediaFetcher]


@pytest.fixture
async def new_fetcher() -> AsyncIterator[NewFetcher]:
    made: list[MediaFetcher] = []

    def make(
        limits: MediaLimits = LIMITS, *, lookup: Lookup | None = None, tls: ssl.SSLContext | None = None
    ) -> MediaFetcher:
        made.append(MediaFetcher(limits, proxy_for=no_proxy, lookup=lookup, tls=tls))
        return made[-1]

    yield make
    for fetcher in made:
        await fetcher.close()


@pytest.fixture
def _loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes 127.0.0.1 count as a public address; no other address is public here."""
    monkeypatch.setattr(media_client, "only_public", lambda host, address: str(address) == "127.0.0.1")


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


async def problem_of(fetcher: MediaFetcher, *urls: str) -> str:
    with pytest.raises(MediaError) as caught:
        await fetcher.fetch(urls)
    assert caught.value.status == 400
    assert caught.value.code == "invalid_value"
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value.message


async def test_fetch__a_picture__has_its_bytes_and_its_kind(new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(answer(PNG, head=b"content-type: text/html\r\n"))) as server:
        found = await new_fetcher().fetch([f"{server.url}/picture"])
    assert found == {f"{server.url}/picture": Media("image/png", PNG)}


async def test_fetch__nothing__opens_nothing(new_fetcher: NewFetcher) -> None:
    assert await new_fetcher().fetch([]) == {}


async def test_fetch__same_address_twice__one_request(new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(answer(PNG))) as server:
        urls = [f"{server.url}/a", f"{server.url}/b", f"{server.url}/a"]
        assert list(await new_fetcher().fetch(urls)) == [f"{server.url}/a", f"{server.url}/b"]
        assert server.connections == 2


async def test_fetch__signed_address__is_sent_as_written(new_fetcher: NewFetcher) -> None:
    lines: list[str] = []

    async def script(peer: Peer) -> None:
        received = await peer.read_request()
        lines.append(received.line)
        assert received.headers["accept-encoding"] == "identity"
        assert "cookie" not in received.headers
        await peer.send(answer(PNG))

    async with raw_server(script) as server:
        await new_fetcher().fetch([f"{server.url}/a%2Fb/%7Ec?sig=a%2Bb%3D&x=%20y#fragment"])
    assert lines == ["GET /a%2Fb/%7Ec?sig=a%2Bb%3D&x=%20y HTTP/1.1"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/latest",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://api.localhost/",
        "http://intranet/",
        "http://db.internal/",
        "http://169.254.169.254/latest/meta-data",
        "http://metadata.google.internal/",
        "http://10.0.0.1:8080/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fd00:ec2::254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://①②⑦.0.0.1/",
        "https://private.example.com/",
        "https://both-private.example.com/",
    ],
)
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


async def test_fetch__too_many_addresses__refused(new_fetcher: NewFetcher) -> None:
    names = Names()
    urls = [f"https://files.example.com/{number}" for number in range(MAX_FILES + 1)]
    assert "too many" in await problem_of(new_fetcher(STRICT, lookup=names), *urls)
    assert names.resolved == []


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
@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("http://127.0.0.1:{port}/secret", "private network"),
        ("http://localhost:{port}/secret", "private network"),
        ("http://169.254.169.254/latest/meta-data", "private network"),
        ("http://[::ffff:127.0.0.1]:{port}/secret", "private network"),
        ("//2130706433:{port}/secret", "private network"),
        ("http://inside.example.com:{port}/secret", "private network"),
        ("file:///etc/passwd", "http and https only"),
        ("http://user:pw@files.example.com:{port}/secret", "credentials"),
        ("http://[::1", "not an address"),
    ],
)
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


@pytest.mark.parametrize("status", [204, 206, 304, 400, 403, 404, 500])
async def test_fetch__any_other_answer__refused(status: int, new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(b"HTTP/1.1 %d X\r\ncontent-length: 0\r\n\r\n" % status)) as server:
        assert f"the answer was {status}" in await problem_of(new_fetcher(), server.url)


async def test_fetch__endless_body__is_cut_off(new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await peer.send(b"1000\r\n" + bytes(0x1000) + b"\r\n")

    async with raw_server(script) as server:
        assert "larger than 100000 bytes" in await problem_of(new_fetcher(), server.url)
        await eventually(lambda: server.peers[0].gone.is_set())


async def test_fetch__announced_size_too_large__nothing_is_read(new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100001\r\n\r\n")
        await peer.hung_up()

    async with raw_server(script) as server:
        assert "larger than 100000 bytes" in await problem_of(new_fetcher(), server.url)
        await eventually(lambda: server.peers[0].gone.is_set())


async def test_fetch__files_too_large_together__refused(new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(answer(PNG.ljust(90_000, b"x")))) as server:
        fetcher = new_fetcher()
        urls = [f"{server.url}/{number}" for number in range(3)]
        assert len(await fetcher.fetch(urls[:2])) == 2
        assert "the files of a request may hold 250000 bytes" in await problem_of(fetcher, *urls)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n" + PNG, "did not arrive whole"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", "did not arrive whole"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n" + PNG, "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef", "does not speak HTTP"),
        (b"220 smtp.example.com ESMTP\r\n", "does not speak HTTP"),
        (b"", "did not arrive whole"),
        (answer(b""), "is empty"),
        (answer(bytes(range(256))), "of a kind that is not known"),
        (answer(gzip.compress(bytes(50_000_000)), head=b"content-encoding: gzip\r\n"), "compressed"),
        (answer(PNG, head=b"content-encoding: br\r\n"), "compressed"),
    ],
)
async def test_fetch__body_that_is_no_file__refused(sent: bytes, problem: str, new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(sent)

    async with raw_server(script) as server:
        assert problem in await problem_of(new_fetcher(), server.url)


async def test_fetch__more_data_than_announced__is_not_read(new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(answer(PNG) + b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nxyz")) as server:
        fetcher = new_fetcher()
        for _ in range(2):
            assert (await fetcher.fetch([server.url]))[server.url].data == PNG
        assert server.connections == 2


async def test_fetch__body_until_the_connection_ends__is_taken(new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n", PNG)

    async with raw_server(script) as server:
        assert (await new_fetcher().fetch([server.url]))[server.url].data == PNG


@pytest.mark.parametrize("name", ["photo.png", "photo.JPEG", "talk.mp3", "paper.pdf", "clip.mp4?x=1"])
async def test_fetch__page_where_the_address_promises_a_file__refused(name: str, new_fetcher: NewFetcher) -> None:
    page = answer(b"<!doctype html><title>Sign in</title>", head=b"content-type: text/html; charset=utf-8\r\n")
    async with raw_server(answering(page)) as server:
        fetcher = new_fetcher()
        assert "is text/html, not " in await problem_of(fetcher, f"{server.url}/{name}")
        assert (await fetcher.fetch([f"{server.url}/page"]))[f"{server.url}/page"].media_type == "text/html"


async def test_fetch__slow_drip__ends_in_time(new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while True:
            await peer.send(b"x")
            await asyncio.sleep(0.02)

    async with raw_server(script) as server:
        fetcher = new_fetcher(replace(LIMITS, seconds=0.2))
        assert "did not arrive in time" in await problem_of(fetcher, server.url)
        await eventually(lambda: all(peer.gone.is_set() for peer in server.peers))


async def test_fetch__silence__ends_in_time(new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        await peer.hung_up()

    async with raw_server(script) as server:
        assert "did not arrive in time" in await problem_of(new_fetcher(replace(LIMITS, seconds=0.2)), server.url)
        await eventually(lambda: all(peer.gone.is_set() for peer in server.peers))


async def test_fetch__worker_is_full__says_so_and_recovers(new_fetcher: NewFetcher) -> None:
    release = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.read_request()
        await release.wait()
        await peer.send(answer(PNG))

    async with raw_server(script) as server:
        fetcher = new_fetcher()
        busy = [
            asyncio.create_task(fetcher.fetch([f"{server.url}/{request}/{file}" for file in range(4)]))
            for request in range(4)
        ]
        await eventually(lambda: server.connections == 16)
        fetcher._limits = replace(LIMITS, seconds=0.2)
        with pytest.raises(MediaBusyError) as caught:
            await fetcher.fetch([f"{server.url}/late"])
        assert caught.value.status == 503
        fetcher._limits = LIMITS
        release.set()
        assert [len(found) for found in await asyncio.gather(*busy)] == [4, 4, 4, 4]
        assert len(await fetcher.fetch([f"{server.url}/late"])) == 1


async def test_fetch__one_of_several_fails__the_others_are_given_up(new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        line = (await peer.read_request()).line
        if "missing" in line:
            await eventually(lambda: server.connections == 2)
            await peer.send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        else:
            await peer.hung_up()

    async with raw_server(script) as server:
        message = await problem_of(new_fetcher(), f"{server.url}/slow", f"{server.url}/missing")
        assert "the answer was 404" in message
        await eventually(lambda: any(peer.gone.is_set() for peer in server.peers))


async def test_fetch__caller_gives_up__the_connection_is_freed(new_fetcher: NewFetcher) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx")
        await peer.hung_up()

    async with raw_server(script) as server:
        fetcher = new_fetcher()
        fetching = asyncio.create_task(fetcher.fetch([server.url]))
        await eventually(lambda: server.connections == 1)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        await eventually(lambda: server.peers[0].gone.is_set())


async def test_close__then_fetch__is_refused(new_fetcher: NewFetcher) -> None:
    fetcher = new_fetcher()
    await fetcher.close()
    with pytest.raises(MediaBusyError):
        await fetcher.fetch(["http://127.0.0.1/"])


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


async def test_fetch__own_lookup__finds_names_and_reports_none(new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(answer(PNG))) as server:
        url = f"http://localhost:{server.port}/"
        assert (await new_fetcher().fetch([url]))[url].data == PNG
    assert "no connection" in await problem_of(new_fetcher(), "http://a..b.invalid/")


def test_limits__configured__are_the_settings() -> None:
    assert MediaLimits.configured() == MediaLimits(20 * 1024 * 1024, 50 * 1024 * 1024, 20.0, False)
