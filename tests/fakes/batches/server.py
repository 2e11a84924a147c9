from __future__ import annotations

import asyncio
import json
import threading
from typing import Any
from urllib.parse import parse_qs

from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.waiting import TIMEOUT_SECONDS

NOW = 1_760_000_000
Headers = dict[str, str]
Answer = tuple[int, bytes, Headers]


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def require(holds: object, message: str, status: int = 400) -> None:
    if not holds:
        raise Refusal(status, message)


def as_json(value: Any) -> Answer:
    return 200, json.dumps(value).encode(), {"content-type": "application/json"}


class BatchServer(UpstreamServer):
    """`handle` answers each request. `hold_content` stops downloads in their middle until it is set."""

    def __init__(self) -> None:
        super().__init__(self._serve_one)
        self.hold_content: threading.Event | None = None
        self.begun = threading.Event()

    def handle(self, request: Received, path: str, query: dict[str, str]) -> Answer:
        raise NotImplementedError

    def refused(self, refusal: Refusal) -> bytes:
        raise NotImplementedError

    async def _serve_one(self, request: Received, connection: Connection) -> None:
        path, _, query = request.path.partition("?")
        try:
            status, body, headers = self.handle(request, path, {k: v[-1] for k, v in parse_qs(query).items()})
        except Refusal as refusal:
            body = self.refused(refusal)
            await connection.send_whole(refusal.status, body, {"content-type": "application/json"})
            return
        if self.hold_content is None or "json" in headers["content-type"]:
            await connection.send_whole(status, body, headers)
            return
        await self._send_in_two(connection, body, headers)

    async def _send_in_two(self, connection: Connection, body: bytes, headers: Headers) -> None:
        held = self.hold_content
        assert held is not None
        await connection.start_stream(200, headers)
        await connection.send_chunk(body[: len(body) // 2])
        self.begun.set()
        await asyncio.to_thread(held.wait, TIMEOUT_SECONDS)
        await connection.send_chunk(body[len(body) // 2 :])
        await connection.end_stream()
