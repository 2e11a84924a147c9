"""The client and the provider of the counts, both in this process and in step: nothing is sent before the last message
has arrived, so that the worker's actions do not depend on time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import load, payloads
from benchmarks.client import Connection, Exchange, Request
from benchmarks.mock_upstream import MockProtocol, Pacer, Stats, Stream
from benchmarks.targets.base import Endpoint

_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Words:
    """A chunk is measured between two words of a stream: opening and ending are no part of it."""

    first: int = 20
    last: int = 220
    total: int = 240


WORDS = Words()


class Steps(Pacer):
    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop(), 1.0)
        self._streams: list[Stream] = []

    def add(self, stream: Stream) -> None:
        self._streams.append(stream)

    def advance(self) -> None:
        self._streams = [stream for stream in self._streams if stream.step()]


async def start_provider(steps: Steps) -> int:
    stats = Stats()
    server = await asyncio.get_running_loop().create_server(lambda: MockProtocol(steps, stats), "127.0.0.1", 0)
    return int(server.sockets[0].getsockname()[1])


class _WordByWord(Connection):
    on_word: Callable[[int], None]

    def data_received(self, data: bytes) -> None:
        before = self.exchange.words if self.exchange is not None else 0
        super().data_received(data)
        if self.exchange is not None and self.exchange.words > before:
            self.on_word(self.exchange.words)


class Lane:
    def __init__(self, connection_class: type[Connection], request: Request) -> None:
        self._request = request
        self._idle = asyncio.Event()
        self._exchange: Exchange | None = None
        self._lost = False
        self.connection = connection_class(request, self._on_idle, self._on_done, self._on_lost)

    def _on_idle(self, connection: Connection) -> None:
        self._idle.set()

    def _on_done(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def _on_lost(self, connection: Connection) -> None:
        self._lost = True
        self._idle.set()

    async def send(self, times: int = 1) -> None:
        """Raises RuntimeError for a wrong answer, TimeoutError without one."""
        for _ in range(times):
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._idle.wait()
                self._idle.clear()
                self.connection.send()
                await self._idle.wait()
            error = "connection lost" if self._lost else self._exchange.error if self._exchange else "no answer"
            if error:
                raise RuntimeError(f"a request of the benchmark was not answered as it should be: {error}")


async def lanes(endpoint: Endpoint, number: int, *, body_bytes: int = 1024) -> list[Lane]:
    request = Request(_encode(endpoint, body_bytes))
    return [await _open(Lane(Connection, request), endpoint.port) for _ in range(number)]


async def streams(endpoint: Endpoint, steps: Steps, at: Callable[[], None], *, number: int = 1) -> None:
    """Sends requests whose answers come word by word, in step: no stream gets a word before all have the one before.
    `at` is called at the first and the last measured word."""
    request = Request(_encode(endpoint, 1024, WORDS.total), WORDS.total, payloads.protocol_of(endpoint.path))
    behind = number

    def on_word(words: int) -> None:
        nonlocal behind
        behind -= 1
        if behind:
            return
        behind = number
        if words in (WORDS.first, WORDS.last):
            at()
        steps.advance()

    open_lanes = [Lane(_WordByWord, request) for _ in range(number)]
    for lane in open_lanes:
        assert isinstance(lane.connection, _WordByWord)  # noqa: S101 - the class was given
        lane.connection.on_word = on_word
        await _open(lane, endpoint.port)
    try:
        await asyncio.gather(*(lane.send() for lane in open_lanes))
    finally:
        for lane in open_lanes:
            lane.connection.abort()


async def _open(lane: Lane, port: int) -> Lane:
    await asyncio.get_running_loop().create_connection(lambda: lane.connection, "127.0.0.1", port)
    return lane


def _encode(endpoint: Endpoint, body_bytes: int, words: int = 0) -> bytes:
    return load.encode(
        load.Plan(
            endpoint.port,
            endpoint.path,
            endpoint.model,
            endpoint.headers,
            endpoint.fields,
            body_bytes=body_bytes,
            stream_events=words,
        )
    )
