"""An upstream of the OpenAI dialect that follows the test's script, one step per request.

The path selects a script: its base URL is `/s/<script>`. A script is a list of steps, the last of which repeats.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.waiting import TIMEOUT_SECONDS

Step = Callable[[Received, Connection], Awaitable[None]]

CREATED = 1_760_000_000
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def completion(text: str = "Hello from upstream", **extra: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": CREATED,
        "model": "scripted-1",
        "choices": [choice],
        "usage": USAGE,
        **extra,
    }


def chunk(delta: dict[str, Any] | None, finish_reason: str | None = None, **extra: Any) -> bytes:
    """`delta` None makes an event without choices, like the one that carries usage."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    body = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": "scripted-1",
        "choices": choices,
        **extra,
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


ROLE = chunk({"role": "assistant", "content": ""})
FINISH = chunk({}, "stop")
USAGE_CHUNK = chunk(None, usage=USAGE)
DONE = b"data: [DONE]\n\n"


def text_events(*words: str) -> list[bytes]:
    return [ROLE, *(chunk({"content": word}) for word in words), FINISH, USAGE_CHUNK, DONE]


def answer(text: str = "Hello from upstream", delay: float = 0.0, **extra: Any) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        await asyncio.sleep(delay)
        if json.loads(request.body).get("stream"):
            words = text.split(" ")
            spaced = [words[0], *(f" {word}" for word in words[1:])]
            await _send_events(connection, text_events(*spaced))
        else:
            body = json.dumps(completion(text, **extra)).encode()
            await connection.send_whole(200, body, {"content-type": "application/json"})

    return step


def status(code: int, message: str = "scripted failure", headers: dict[str, str] | None = None) -> Step:
    body = json.dumps({"error": {"message": message, "type": "scripted", "code": str(code)}}).encode()
    return raw(code, body, {"content-type": "application/json", **(headers or {})})


def raw(code: int, body: bytes, headers: dict[str, str] | None = None) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        await connection.send_whole(code, body, headers)

    return step


def stream(*pieces: bytes | float | threading.Event, end: str = "end") -> Step:
    """Bytes are sent as one piece each, numbers are pauses in seconds, events are waited for. `end` is "end", "hang",
    "reset" or "hang_up"."""

    async def step(request: Received, connection: Connection) -> None:
        await connection.start_stream()
        for piece in pieces:
            if isinstance(piece, bytes):
                await connection.send_chunk(piece)
            elif isinstance(piece, threading.Event):
                await asyncio.to_thread(piece.wait, TIMEOUT_SECONDS)
            else:
                await asyncio.sleep(piece)
        if end == "end":
            await connection.end_stream()
        elif end == "hang":
            await connection.wait_until_gone()
        elif end == "reset":
            connection.reset()
        else:
            connection.hang_up()

    return step


def endless(pause: float = 0.01) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        await connection.start_stream()
        await connection.send_chunk(ROLE)
        while not connection.lost.is_set():
            await connection.send_chunk(chunk({"content": "word "}))
            await asyncio.sleep(pause)

    return step


async def hang(request: Received, connection: Connection) -> None:
    await connection.wait_until_gone()


async def reset(request: Received, connection: Connection) -> None:
    connection.reset()


async def hang_up(request: Received, connection: Connection) -> None:
    connection.hang_up()


async def garbage(request: Received, connection: Connection) -> None:
    await connection.send(b"\x00\xff this is not HTTP \r\n\r\n")
    connection.hang_up()


async def _send_events(connection: Connection, events: list[bytes]) -> None:
    await connection.start_stream()
    for event in events:
        await connection.send_chunk(event)
    await connection.end_stream()


@dataclass
class Script:
    steps: list[Step]
    received: list[Received] = field(default_factory=list)
    arrival: threading.Condition = field(default_factory=threading.Condition)

    def take(self, request: Received) -> Step:
        with self.arrival:
            self.received.append(request)
            self.arrival.notify_all()
            return self.steps[min(len(self.received), len(self.steps)) - 1]

    def wait_for(self, count: int, seconds: float = TIMEOUT_SECONDS) -> None:
        with self.arrival:
            if not self.arrival.wait_for(lambda: len(self.received) >= count, seconds):
                raise AssertionError(f"{len(self.received)} of {count} requests arrived")


class ScriptedServer(UpstreamServer):
    def __init__(self) -> None:
        super().__init__(self._follow)
        self.scripts: dict[str, Script] = {}

    def base_url(self, name: str) -> str:
        return f"{self.url}/s/{name}"

    def play(self, name: str, *steps: Step) -> Script:
        script = Script(list(steps))
        self.scripts[name] = script
        return script

    async def _follow(self, request: Received, connection: Connection) -> None:
        step = self.scripts[request.path.split("/")[2]].take(request)
        await step(request, connection)
