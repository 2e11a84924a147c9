"""The load driver: keep-alive connections that send one request and check every answer.

`python -m benchmarks.load --port P --connections 64 --seconds 3` prints `start` and `stop` at the borders of the
measured window, so that a parent can read the CPU time of what is under load, and last the result as one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import uvloop

from benchmarks import payloads
from benchmarks.client import Connection, Exchange, Request

_RECONNECT_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """With `rate` 0 it is a closed loop, with `stream_events` 0 it requests no stream. Times are in seconds."""

    port: int
    path: str = "/v1/chat/completions"
    model: str = payloads.MODEL
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    """Further fields of the body."""
    connections: int = 64
    burst: int = 0
    """Further connections that open together when the window begins."""
    seconds: float = 3.0
    warmup: float = 0.5
    rate: float = 0.0
    body_bytes: int = 1024
    stream_events: int = 0
    events_per_second: float = 50.0
    """The pace of the mock. Streams start spread over the length of one, and lateness is measured against the pace."""


@dataclass(slots=True)
class Result:
    """Counts of the measured window only. Times are in milliseconds, None if nothing was measured."""

    seconds: float = 0.0
    requests: int = 0
    sent: int = 0
    """Not of the window alone: all requests of the run, those of the warm-up and the unfinished ones included."""
    errors: int = 0
    error_kinds: dict[str, int] = field(default_factory=dict)
    requests_per_second: float = 0.0
    latency_p50: float | None = None
    latency_p99: float | None = None
    first_p50: float | None = None
    """Latencies of the first request of each connection that opens within the window."""
    first_p99: float | None = None
    first_word_p50: float | None = None
    first_word_p99: float | None = None
    words: int = 0
    words_per_second: float = 0.0
    lateness_p50: float | None = None
    lateness_p99: float | None = None


class Driver:
    def __init__(self, plan: Plan, on_window: Callable[[str], None] = lambda border: None) -> None:
        self._plan = plan
        self._on_window = on_window
        self._request = Request(encode(plan), plan.stream_events, payloads.protocol_of(plan.path))
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._due: deque[float] = deque()
        self._done: list[Exchange] = []
        self._failures: Counter[str] = Counter()
        self._sent = 0
        self._measuring = False
        self._stopped = False
        self._openings: set[asyncio.Task[None]] = set()
        self._began = 0.0
        self._ended = 0.0

    async def run(self) -> Result:
        pacing = asyncio.create_task(self._pace()) if self._plan.rate else None
        opened = asyncio.create_task(self._open_all())
        stream_seconds = self._plan.stream_events / self._plan.events_per_second
        await asyncio.sleep(max(self._plan.warmup, stream_seconds))
        self._measuring, self._began = True, time.perf_counter()
        self._on_window("start")
        for _ in range(self._plan.burst):
            self._open()
        await asyncio.sleep(self._plan.seconds)
        self._on_window("stop")
        self._measuring, self._ended = False, time.perf_counter()
        return await self._stop([task for task in (pacing, opened) if task is not None])

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> Result:
        self._stopped = True
        unfinished = [connection.exchange for connection in self._connections if connection.exchange is not None]
        # The result is computed before the connections are cut, which would turn open exchanges into failures.
        result = self._summarize(unfinished)
        for connection in list(self._connections):
            connection.abort()
        for task in (*tasks, *self._openings):
            task.cancel()
        await asyncio.gather(*tasks, *self._openings, return_exceptions=True)
        return result

    async def _open_all(self) -> None:
        spread = self._plan.stream_events / self._plan.events_per_second / self._plan.connections
        for _ in range(self._plan.connections):
            self._open()
            await asyncio.sleep(spread)

    def _open(self) -> None:
        opening = asyncio.create_task(self._connect())
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)

    async def _connect(self) -> None:
        while not self._stopped:
            try:
                _, connection = await self._loop.create_connection(self._new_connection, "127.0.0.1", self._plan.port)
            except OSError as error:
                self._failures[f"connect: {type(error).__name__}"] += self._measuring
                await asyncio.sleep(_RECONNECT_SECONDS)
                continue
            self._connections.add(connection)
            return

    def _new_connection(self) -> Connection:
        return Connection(self._request, self._on_idle, self._on_done, self._on_lost)

    def _on_idle(self, connection: Connection) -> None:
        if self._stopped:
            return
        if not self._plan.rate:
            self._send(connection)
        elif self._due:
            self._send(connection, self._due.popleft())
        else:
            self._idle.append(connection)

    def _send(self, connection: Connection, due: float | None = None) -> None:
        self._sent += 1
        connection.send(due)

    def _on_done(self, exchange: Exchange) -> None:
        # Connections are cut after the window: their exchanges count as unfinished.
        if not self._stopped and (self._measuring or exchange.arrivals):
            self._done.append(exchange)

    def _on_lost(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if not self._stopped:
            self._open()

    async def _pace(self) -> None:
        """Starts requests at the fixed rate; a request that finds no idle connection counts its wait as latency."""
        started, sent = time.perf_counter(), 0
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            due = int((now - started) * self._plan.rate) - sent
            sent += due
            for _ in range(due):
                if self._idle:
                    self._send(self._idle.popleft())
                else:
                    self._due.append(now)

    def _summarize(self, unfinished: Sequence[Exchange]) -> Result:
        finished = [exchange for exchange in self._done if self._began <= exchange.finished <= self._ended]
        failures = self._failures + Counter(exchange.error for exchange in finished if exchange.error)
        good = [exchange for exchange in finished if not exchange.error]
        seconds = self._ended - self._began
        result = Result(seconds, len(good), self._sent, failures.total(), dict(failures), len(good) / seconds)
        result.latency_p50, result.latency_p99 = percentiles([one.finished - one.started for one in good])
        firsts = [one.finished - one.started for one in good if one.is_first and one.started >= self._began]
        result.first_p50, result.first_p99 = percentiles(firsts)
        if self._plan.stream_events:
            self._add_streams(result, [*self._done, *unfinished])
        return result

    def _add_streams(self, result: Result, exchanges: list[Exchange]) -> None:
        """Counts words by their time of arrival, so that streams longer than the window count in part."""
        firsts = [
            one.first_word - one.started
            for one in exchanges
            if not one.error and self._began <= one.first_word <= self._ended
        ]
        lateness: list[float] = []
        for one in exchanges:
            seen = 0
            for arrived, words in one.arrivals:
                if self._began <= arrived <= self._ended:
                    result.words += words
                    due = one.first_word + seen / self._plan.events_per_second
                    lateness.append(max(0.0, arrived - due))
                seen += words
        result.words_per_second = result.words / result.seconds
        result.first_word_p50, result.first_word_p99 = percentiles(firsts)
        result.lateness_p50, result.lateness_p99 = percentiles(lateness)


def percentiles(seconds: list[float]) -> tuple[float | None, float | None]:
    if not seconds:
        return None, None
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return round(ordered[len(ordered) // 2] * 1000, 3), round(ordered[min(last, int(len(ordered) * 0.99))] * 1000, 3)


def encode(plan: Plan, text: str = payloads.TEXT) -> bytes:
    body = payloads.request_body(
        plan.model,
        size=plan.body_bytes,
        stream_events=plan.stream_events,
        more=plan.fields,
        protocol=payloads.protocol_of(plan.path),
        text=text,
    )
    headers = {
        "host": f"127.0.0.1:{plan.port}",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **plan.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    address = payloads.address_of(plan.path, stream=plan.stream_events > 0)
    return f"POST {address} HTTP/1.1\r\n{lines}\r\n".encode() + body


async def _main(plan: Plan) -> None:
    result = await Driver(plan, lambda border: print(border, flush=True)).run()
    print(json.dumps(asdict(result)), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", help="a whole plan as JSON, in place of the options below")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--path", default="/v1/chat/completions")
    parser.add_argument("--key", default="", help="sent as the Bearer token")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--burst", type=int, default=0, help="further connections that open as the window begins")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rate", type=float, default=0.0, help="requests per second; 0 is a closed loop")
    parser.add_argument("--body-bytes", type=int, default=1024)
    parser.add_argument("--stream-events", type=int, default=0)
    options = vars(parser.parse_args(arguments))
    plan, key = options.pop("plan"), options.pop("key")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    # A garbage collection within the window would show as latency of the target, and a run is short enough without.
    gc.disable()
    uvloop.run(_main(Plan(**json.loads(plan)) if plan else Plan(headers=headers, **options)))


if __name__ == "__main__":
    main(sys.argv[1:])
