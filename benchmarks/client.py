from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import httptools

from benchmarks import payloads


@dataclass(frozen=True, slots=True)
class Request:
    data: bytes
    words: int = 0
    protocol: payloads.Protocol = payloads.CHAT


@dataclass(slots=True)
class Exchange:
    """Times in seconds of `time.perf_counter`; `error` is empty if the answer was right."""

    started: float
    first_word: float = 0.0
    finished: float = 0.0
    words: int = 0
    error: str = ""
    is_first: bool = False
    """Whether it is the first exchange of its connection."""
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    """When words arrived and how many at once; only of streams."""


class Connection(asyncio.Protocol):
    """Calls `on_idle` when it can take a request, `on_done` with every exchange, and `on_lost` when it is unusable.

    `on_done` comes before `on_idle`; after `on_lost` there are no more calls.
    """

    def __init__(
        self,
        request: Request,
        on_idle: Callable[[Connection], None],
        on_done: Callable[[Exchange], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._request = request
        self._on_idle, self._on_done, self._on_lost = on_idle, on_done, on_lost
        self._transport: asyncio.Transport | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._is_new = True
        self._complete = False
        self._tail = b""
        self._ended = False
        self._body: list[bytes] = []

    @property
    def exchange(self) -> Exchange | None:
        return self._exchange

    def send(self, started: float | None = None) -> None:
        """`started` is the time the request was due, if earlier than now."""
        if self._transport is None:
            return
        self._exchange = Exchange(time.perf_counter() if started is None else started, is_first=self._is_new)
        self._is_new = False
        self._complete = False
        self._transport.write(self._request.data)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The cast is needed because uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._on_idle(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._exchange is not None:
            self._finish("connection lost")
        self._on_lost(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._finish(f"not HTTP: {type(error).__name__}")
            self.abort()
            return
        if self._complete:
            self._complete = False
            self._on_idle(self)

    # The parser calls the methods below.
    def on_message_begin(self) -> None:
        self._body.clear()
        self._tail, self._ended = b"", False

    def on_body(self, body: bytes) -> None:
        if self._request.words:
            self._count_words(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        self._finish(self._fault())
        if not self._parser.should_keep_alive():
            self.abort()
            return
        # The next request waits until the parser returns: a write in here could bring data into a parser still running.
        self._complete = True

    def _count_words(self, body: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        # A word or the end may be cut by the border between two reads, so the tail carries the last bytes over.
        text, word = self._tail + body, self._request.protocol.word
        self._ended = self._ended or self._request.protocol.end in text
        found = text.count(word)
        if found:
            now = time.perf_counter()
            exchange.first_word = exchange.first_word or now
            exchange.words += found
            exchange.arrivals.append((now, found))
            text = text[text.rfind(word) + len(word) :]
        self._tail = text[-64:]

    def _fault(self) -> str:
        status = self._parser.get_status_code()
        if status != 200:
            return f"status {status}"
        if not self._request.words:
            return "" if payloads.ANSWER_END in b"".join(self._body) else "wrong answer"
        if self._exchange is not None and self._exchange.words != self._request.words:
            return f"{self._exchange.words} of {self._request.words} words"
        return "" if self._ended else "stream without end"

    def _finish(self, error: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.finished = time.perf_counter()
            exchange.error = error
            self._on_done(exchange)
