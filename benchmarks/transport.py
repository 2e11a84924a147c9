"""Measures the CPU time per upstream request of each transport, side by side: `python -m benchmarks.transport`.

The upstream is a process of its own with a prepared answer; only this process's CPU is counted. Rounds of the
transports take turns, so that any other load of the machine hits all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from typing import cast

import httptools
import uvloop

from integrations.providers.base import UpstreamRequest
from integrations.transport.aiohttp_client import AiohttpTransport
from integrations.transport.base import Timeouts, Transport
from integrations.transport.pool import PooledTransport

BODY = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 950 + b'"}]}'
ANSWER_BYTES = 1500
ANSWER = b"".join(
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_1\r\n",
        b"openai-processing-ms: 1\r\nserver: bench\r\ncontent-length: %d\r\n\r\n" % ANSWER_BYTES,
        b"y" * ANSWER_BYTES,
    )
)
TIMEOUTS = Timeouts()


class Upstream(asyncio.Protocol):
    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        if self._transport is not None:
            self._transport.write(ANSWER)


def serve(pipe: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


async def one_round(transport: Transport, url: str, requests: int, parallel: int) -> float:
    headers = {"content-type": "application/json", "authorization": "Bearer benchmark"}

    async def lane() -> None:
        for _ in range(requests // parallel):
            response = await transport.send(UpstreamRequest("POST", url, headers, BODY), TIMEOUTS)
            await response.read(limit=1 << 20)
            response.close()

    before = time.process_time()
    await asyncio.gather(*(lane() for _ in range(parallel)))
    return (time.process_time() - before) * 1e6 / (requests // parallel * parallel)


async def compare(url: str, rounds: int, requests: int, parallel: int) -> None:
    transports: dict[str, Transport] = {"pool": PooledTransport(), "aiohttp": AiohttpTransport()}
    figures: dict[str, list[float]] = {name: [] for name in transports}
    for transport in transports.values():
        await one_round(transport, url, requests, parallel)
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for name, transport in transports.items():
            figures[name].append(await one_round(transport, url, requests, parallel))
    for transport in transports.values():
        await transport.close()
    lean = statistics.median(figures["pool"])
    for name, values in figures.items():
        median = statistics.median(values)
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(f"{name:8} {median:7.1f} µs CPU per request ({spread})   {median / lean:.2f} times pool")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--parallel", type=int, default=64)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    upstream = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    upstream.start()
    url = f"http://127.0.0.1:{ours.recv()}/v1/chat/completions"
    try:
        uvloop.run(compare(url, options.rounds, options.requests, options.parallel))
    finally:
        upstream.terminate()
        upstream.join()


if __name__ == "__main__":
    main()
