"""Answers requests from recorded exchanges: each has a base URL of its own, `/r/<name>`, and ignores the rest of the
path."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from tests.fakes.upstream import Connection, Received, UpstreamServer

Splitter = Callable[[bytes], list[bytes]]

# These headers frame the recording, not the replay.
_FRAMING = frozenset({"content-length", "transfer-encoding", "content-encoding", "connection", "content-type"})


def whole(body: bytes) -> list[bytes]:
    return [body]


def single_bytes(body: bytes) -> list[bytes]:
    return [body[i : i + 1] for i in range(len(body))]


def at_random(seed: int, max_length: int = 60) -> Splitter:
    """Cuts into pieces of 1 to `max_length` bytes, also inside characters, lines and events."""

    def split(body: bytes) -> list[bytes]:
        source = random.Random(seed)
        pieces, start = [], 0
        while start < len(body):
            end = start + source.randint(1, max_length)
            pieces.append(body[start:end])
            start = end
        return pieces

    return split


def inside_characters(body: bytes) -> list[bytes]:
    """Cuts before every continuation byte of UTF-8 and between `\\r` and `\\n`."""
    cuts = [0, *(i for i in range(1, len(body)) if body[i] & 0xC0 == 0x80 or body[i - 1 : i + 1] == b"\r\n"), len(body)]
    return [body[a:b] for a, b in pairwise(cuts) if a < b]


def cut_at(share: float) -> Splitter:
    """Keeps the first `share` of the body; the connection closes without an end of the stream."""

    def split(body: bytes) -> list[bytes]:
        return [body[: int(len(body) * share)]]

    return split


def body_of(response: Mapping[str, Any]) -> bytes:
    """AWS event streams are binary and recorded as base64."""
    if response.get("body_base64") is not None:
        return base64.b64decode(response["body_base64"])
    text: str = response["body_text"]
    return text.encode()


class ReplayServer(UpstreamServer):
    """Serves recordings. `splits[name]` says how a stream is cut; `received_by(name)` returns the requests for a
    recording."""

    def __init__(self, recordings: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(self._replay)
        self._recordings = recordings
        self.splits: dict[str, Splitter] = {}
        self.truncated: set[str] = set()

    def base_url(self, name: str) -> str:
        return f"{self.url}/r/{name}"

    def received_by(self, name: str) -> list[Received]:
        return [request for request in self.received if request.path.startswith(f"/r/{name}/")]

    async def _replay(self, request: Received, connection: Connection) -> None:
        name = request.path.split("/")[2]
        response = self._recordings[name]["response"]
        headers = {k: v for k, v in response["headers"].items() if k.lower() not in _FRAMING}
        headers["content-type"] = response["content_type"]
        body = body_of(response)
        if not response["stream"]:
            await connection.send_whole(response["status"], body, headers)
            return
        await connection.start_stream(response["status"], headers)
        for piece in self.splits.get(name, whole)(body):
            await connection.send_chunk(piece)
        if name in self.truncated:
            connection.hang_up()
        else:
            await connection.end_stream()
