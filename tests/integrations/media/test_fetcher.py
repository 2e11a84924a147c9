"""Tests of fetching files: sizes, kinds, times, and answers that are no file."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace

import pytest

from integrations.errors import MediaBusyError
from integrations.media import MediaLimits
from integrations.media.fetcher import MAX_FILES
from integrations.providers.base import Media
from tests.fakes.raw_server import Peer, answer, answering, raw_server
from tests.integrations.media.exchanges import LIMITS, PNG, STRICT, NewFetcher, problem_of
from tests.integrations.names import Names
from tests.waiting import eventually


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


async def test_fetch__too_many_addresses__refused(new_fetcher: NewFetcher) -> None:
    names = Names()
    urls = [f"https://files.example.com/{number}" for number in range(MAX_FILES + 1)]
    assert "too many" in await problem_of(new_fetcher(STRICT, lookup=names), *urls)
    assert names.resolved == []


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


async def test_fetch__worker_is_full__refuses_and_recovers(new_fetcher: NewFetcher) -> None:
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


async def test_fetch__own_lookup__finds_names_and_reports_none(new_fetcher: NewFetcher) -> None:
    async with raw_server(answering(answer(PNG))) as server:
        url = f"http://localhost:{server.port}/"
        assert (await new_fetcher().fetch([url]))[url].data == PNG
    assert "no connection" in await problem_of(new_fetcher(), "http://a..b.invalid/")


def test_limits__configured__are_the_settings() -> None:
    assert MediaLimits.configured() == MediaLimits(20 * 1024 * 1024, 50 * 1024 * 1024, 20.0, False)
