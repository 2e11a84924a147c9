"""Steady load on a fleet by OpenAI's SDK without its retries: half of the requests are streams."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from openai import AsyncOpenAI, AsyncStream, OpenAIError
from openai.types.chat import ChatCompletionChunk

from tests.services import START_SECONDS

# It would log each request.
logging.getLogger("httpx2").setLevel(logging.WARNING)

_MESSAGES = [{"role": "user", "content": "Hello, fleet"}]


@dataclass(frozen=True)
class Failure:
    began: float
    ended: float
    reason: str


@dataclass
class Load:
    """Sends at a fixed rate a second, whether or not earlier requests have ended. `answered` has the ids of whole
    answers."""

    url: str
    key: str
    rate: float
    answered: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _more: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def go_on(self, seconds: float) -> None:
        """Returns when as many requests have ended as begin in `seconds`."""
        with self._more:
            wanted = self._ended + seconds * self.rate
            if not self._more.wait_for(lambda: self._ended >= wanted, seconds + START_SECONDS):
                raise AssertionError(f"the load stands still: {self._ended} of {wanted:.0f} requests ended")

    @property
    def _ended(self) -> int:
        return len(self.answered) + len(self.failures)

    async def _run(self) -> None:
        async with AsyncOpenAI(
            base_url=f"{self.url}/api/gateway/v1", api_key=self.key, max_retries=0, timeout=START_SECONDS
        ) as client:
            running: set[asyncio.Task[None]] = set()
            number, began = 0, time.monotonic()
            while not self._stop.is_set():
                task = asyncio.create_task(self._ask(client, stream=number % 2 == 0))
                running.add(task)
                task.add_done_callback(running.discard)
                number += 1
                await asyncio.sleep(began + number / self.rate - time.monotonic())
            await asyncio.gather(*running)

    async def _ask(self, client: AsyncOpenAI, *, stream: bool) -> None:
        began, reason, request_id = time.monotonic(), "", ""
        try:
            request_id, is_whole = await (_streamed(client) if stream else _whole(client))
            reason = "" if is_whole else "the answer broke off"
        except OpenAIError as error:
            reason = f"{type(error).__name__}: {error}"[:300]
        with self._more:
            if reason:
                self.failures.append(Failure(began, time.monotonic(), reason))
            else:
                self.answered.append(request_id)
            self._more.notify_all()


async def _whole(client: AsyncOpenAI) -> tuple[str, bool]:
    raw = await client.chat.completions.with_raw_response.create(
        model="openai_compatible/echo",
        messages=_MESSAGES,  # type: ignore[arg-type]  # a constant is no TypedDict
        extra_headers={"x-svc-session-id": "fleet"},
    )
    answer = raw.parse()
    return raw.headers["x-request-id"], answer.choices[0].finish_reason == "stop"


async def _streamed(client: AsyncOpenAI) -> tuple[str, bool]:
    raw = await client.chat.completions.with_raw_response.create(
        model="openai_compatible/slow",
        messages=_MESSAGES,  # type: ignore[arg-type]  # a constant is no TypedDict
        stream=True,
        extra_headers={"x-svc-session-id": "fleet"},
    )
    last: ChatCompletionChunk | None = None
    chunks = raw.parse()
    assert isinstance(chunks, AsyncStream)
    async for chunk in chunks:
        last = chunk if chunk.choices else last
    return raw.headers["x-request-id"], last is not None and last.choices[0].finish_reason == "stop"
