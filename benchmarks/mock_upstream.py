"""A provider of OpenAI's, Anthropic's or Google's protocols that costs as little as a Python process can: every answer
is built beforehand, and the path selects the dialect.

`python -m benchmarks.mock_upstream --port 0` prints `listening PORT`. `max_tokens` of a streaming request is the number
of words in its stream, which leave at a steady pace; `answer_bytes` in the metadata of another request is the size of
its answer. `/mock/stats` returns counters.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, cast

import httptools
import uvloop

from benchmarks import payloads

_WANTS_STREAM = re.compile(rb'"stream"\s*:\s*true')
_WANTS_USAGE = re.compile(rb'"include_usage"\s*:\s*true')
_MAX_TOKENS = re.compile(rb'"(?:max_(?:completion_|output_)?tokens|maxOutputTokens)"\s*:\s*(\d+)')
_ANSWER_BYTES = re.compile(rb'"answer_bytes"\s*:\s*"(\d+)"')
_DEFAULT_WORDS = 100
_SLOTS = 10


@dataclass(slots=True)
class Stats:
    requests: int = 0
    streams_opened: int = 0
    streams_finished: int = 0
    streams_aborted: int = 0


@dataclass(frozen=True, slots=True)
class Dialect:
    answer: bytes
    head: bytes
    word: bytes
    ending: Callable[[int, bool], bytes]  # The arguments are the number of words, and whether usage was requested.


class Stream:
    __slots__ = ("ending", "protocol", "word", "words_left")

    def __init__(self, protocol: MockProtocol, dialect: Dialect, words: int, with_usage: bool) -> None:
        self.protocol = protocol
        self.words_left = words
        self.word = dialect.word
        self.ending = _chunked(dialect.ending(words, with_usage)) + b"0\r\n\r\n"

    def step(self) -> bool:
        """Returns True while the stream goes on."""
        transport = self.protocol.transport
        if transport is None or transport.is_closing():
            return False
        self.words_left -= 1
        if self.words_left:
            transport.write(self.word)
            return True
        transport.write(self.word + self.ending)
        self.protocol.stream_finished()
        return False


class Pacer:
    """Gives every open stream one step per period, with one timer for all of them, spread over slots of the period."""

    def __init__(self, loop: asyncio.AbstractEventLoop, events_per_second: float) -> None:
        self._loop = loop
        self._tick = 1.0 / events_per_second / _SLOTS
        self._slots: list[list[Stream]] = [[] for _ in range(_SLOTS)]
        self._slot = 0
        self._due = 0.0
        self._running = False

    def add(self, stream: Stream) -> None:
        self._slots[self._slot].append(stream)
        if not self._running:
            self._running = True
            self._due = self._loop.time() + self._tick
            self._loop.call_at(self._due, self._advance)

    def _advance(self) -> None:
        # A loop that woke late catches up, so that the pace holds on average.
        while self._due <= self._loop.time():
            self._due += self._tick
            self._slot = (self._slot + 1) % _SLOTS
            slot = self._slots[self._slot]
            if slot:
                self._slots[self._slot] = [stream for stream in slot if stream.step()]
        self._running = any(self._slots)
        if self._running:
            self._loop.call_at(self._due, self._advance)


class MockProtocol(asyncio.Protocol):
    def __init__(self, pacer: Pacer, stats: Stats) -> None:
        self.transport: asyncio.Transport | None = None
        self._pacer = pacer
        self._stats = stats
        self._parser: Any = httptools.HttpRequestParser(self)
        self._url = b""
        self._body: list[bytes] = []
        self._streaming = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The cast is needed because uvloop's transports are no subclass of asyncio's.
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._streaming:
            self._stats.streams_aborted += 1

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._write(_response(b"{}", b"400 Bad Request"))
            if self.transport is not None:
                self.transport.close()

    def stream_finished(self) -> None:
        self._streaming = False
        self._stats.streams_finished += 1

    # The parser calls the methods below.
    def on_message_begin(self) -> None:
        self._url = b""
        self._body.clear()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._stats.requests += 1
        if self._url.endswith(b"/chat/completions"):
            self._complete(_OPENAI, b"".join(self._body))
        elif self._url.endswith(b"/v1/messages"):
            self._complete(_ANTHROPIC, b"".join(self._body))
        elif self._url.endswith(b"/v1/responses"):
            self._complete(_RESPONSES, b"".join(self._body))
        elif self._url.endswith(b":generateContent"):
            self._write(_GEMINI.answer)
        elif self._url.endswith(b":streamGenerateContent?alt=sse"):
            self._stream(_GEMINI, b"".join(self._body))
        elif self._url.endswith(b"/models"):
            self._write(_MODELS)
        elif self._url == b"/mock/stats":
            self._write(_response(json.dumps(asdict(self._stats)).encode()))
        else:
            self._write(_NOT_FOUND)

    def _complete(self, dialect: Dialect, body: bytes) -> None:
        if not _WANTS_STREAM.search(body):
            size = _ANSWER_BYTES.search(body) if dialect is _OPENAI else None
            self._write(_response(payloads.answer(int(size.group(1)))) if size else dialect.answer)
            return
        self._stream(dialect, body)

    def _stream(self, dialect: Dialect, body: bytes) -> None:
        limit = _MAX_TOKENS.search(body)
        words = max(1, int(limit.group(1))) if limit else _DEFAULT_WORDS
        stream = Stream(self, dialect, words, _WANTS_USAGE.search(body) is not None)
        self._stats.streams_opened += 1
        self._streaming = True
        self._write(dialect.head)
        if stream.step():
            self._pacer.add(stream)

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)


def _response(body: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
    return head + body


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _openai_ending(words: int, with_usage: bool) -> bytes:
    usage = payloads.usage_event(words) if with_usage else b""
    return payloads.event({}, "stop") + usage + b"data: [DONE]\n\n"


_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
_OPENAI = Dialect(
    answer=_response(payloads.answer()),
    head=_STREAM_HEAD + _chunked(payloads.event({"role": "assistant", "content": ""})),
    word=_chunked(payloads.event({"content": " " + payloads.EVENT_WORD.decode()})),
    ending=_openai_ending,
)
_ANTHROPIC = Dialect(
    answer=_response(payloads.anthropic_answer()),
    head=_STREAM_HEAD + _chunked(payloads.anthropic_opening()),
    word=_chunked(payloads.anthropic_word()),
    ending=lambda words, with_usage: payloads.anthropic_ending(words),
)
_RESPONSES = Dialect(
    answer=_response(payloads.responses_answer()),
    head=_STREAM_HEAD + _chunked(payloads.responses_opening()),
    word=_chunked(payloads.responses_word()),
    ending=lambda words, with_usage: payloads.responses_ending(words),
)
_GEMINI = Dialect(
    answer=_response(payloads.gemini_answer()),
    head=_STREAM_HEAD,
    word=_chunked(payloads.gemini_word()),
    ending=lambda words, with_usage: payloads.gemini_ending(words),
)
_MODELS = _response(payloads.models())
_NOT_FOUND = _response(b'{"error":{"message":"no such path","type":"invalid_request_error"}}', b"404 Not Found")


async def start(port: int = 0, events_per_second: float = 50.0) -> tuple[asyncio.Server, int]:
    loop = asyncio.get_running_loop()
    pacer, stats = Pacer(loop, events_per_second), Stats()
    server = await loop.create_server(lambda: MockProtocol(pacer, stats), "127.0.0.1", port, backlog=2048)
    return server, int(server.sockets[0].getsockname()[1])


async def _serve(port: int, events_per_second: float) -> None:
    server, bound = await start(port, events_per_second)
    print(f"listening {bound}", flush=True)
    gc.freeze()
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--events-per-second", type=float, default=50.0)
    options = parser.parse_args()
    try:
        uvloop.run(_serve(options.port, options.events_per_second))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
