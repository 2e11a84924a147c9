"""A client of the gateway within the service: its requests pass all stages and limits, without an API key.

The column `source` of the request log names the asking part of the service: playground, judge, agent.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from analytics.request_log.record import RequestRecord
from analytics.shipper.streamed import assembled
from core.keys.services import KeyRecord
from gateway.pipeline.context import Origin, RequestState
from gateway.pipeline.run import serve
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import Message
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.reply import reply_of
from prompts.selectors import PromptVersionRecord

logger = logging.getLogger("gateway.inside")

# The time that a request gets to end after its client hung up: the pipeline looks for that every quarter of a second.
_GRACE_SECONDS = 0.6
# Answers that are measured or compared have to come from a model, not from the cache.
_NOT_CACHED = "no-store"

# The nesting of an answer is bounded, because it is encoded again deeper in the stack than where it was decoded.
_MAX_DEPTH = 200

_decode = msgspec.json.Decoder(dict[str, Any]).decode
# The tasks of requests that have not ended yet, given up or not: asyncio keeps only weak references to tasks.
_lingering: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class Caller:
    """The asking part of the service.

    `key_id` is 0 without an API key; `attributes` go into the record; `version` replaces the active version of the
    named prompt config. `typed` holds the texts that a person typed: input guardrails check only these; if None, the
    whole request.
    """

    source: str
    key_id: int = 0
    session_id: str = ""
    user_id: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    version: PromptVersionRecord | None = None
    typed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    status: int
    type: str
    code: str
    message: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InternalAnswer:
    """`completion` is the answer's JSON, or the part of it that a broken stream delivered.

    `record` is None until the request has ended, `error` if it succeeded. `seconds` count from its start.
    """

    request_id: str
    seconds: float
    completion: dict[str, Any] | None = None
    error: Reported | None = None
    headers: dict[str, str] = field(default_factory=dict)
    record: RequestRecord | None = None

    @property
    def cost_usd(self) -> Decimal | None:
        """What the request cost, None if that is not known. One that reached no provider cost nothing, one whose record
        is not there yet may have."""
        record = self.record
        if record is None or not (record.cost_known or (self.error is not None and not record.cost_usd)):
            return None
        return Decimal(record.cost_usd or 0)


_UNREADABLE = Reported(500, "api_error", "provider_error", "The answer is not JSON that can be read")


async def ask(
    runtime: Runtime,
    snapshot: ProjectSnapshot,
    caller: Caller,
    body: bytes,
    *,
    seconds: float,
    surface: Surface = CHAT,
) -> InternalAnswer:
    request = InternalRequest(runtime, snapshot, caller, body, seconds, surface)
    async for _ in request.parts():
        pass
    return request.answer()


async def settled(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    if left := {task for task in _lingering if task.get_loop() is loop}:
        await asyncio.wait(left, timeout=seconds)


def _key_of(caller: Caller, snapshot: ProjectSnapshot) -> KeyRecord:
    """Returns the caller's key with its and its team's budgets and rates, which count its own requests.

    A request within another one of the key, such as the judge's, waits for no concurrency limit and may use any model.
    """
    for key in snapshot.keys.values() if caller.key_id else ():
        if key.id == caller.key_id:
            own, of_team = (
                limits and dataclasses.replace(limits, concurrent_requests=None)
                for limits in (key.limits, key.team_limits)
            )
            return dataclasses.replace(key, limits=own, team_limits=of_team, allowed_models=(), allowed_providers=())
    return KeyRecord(caller.key_id, snapshot.project_id, "", frozenset(), None)


class InternalRequest:
    """A request in progress: `parts()` yields the bytes of the answer, then `answer()` has the outcome.

    Closing `parts()` early hangs up: the call of the provider ends, and the outcome in the record is `cancelled`.
    """

    def __init__(
        self,
        runtime: Runtime,
        snapshot: ProjectSnapshot,
        caller: Caller,
        body: bytes,
        seconds: float,
        surface: Surface = CHAT,
    ) -> None:
        key = _key_of(caller, snapshot)
        headers = RequestHeaders(session_id=caller.session_id, user_id=caller.user_id, cache_control=_NOT_CACHED)
        self.request_id = new_request_id()
        self._runtime, self._seconds = runtime, seconds
        self._started = time.perf_counter()
        self._state = RequestState(
            self.request_id,
            time.time_ns() // 1000,
            self._started,
            snapshot,
            key,
            headers,
            origin=Origin(caller.source, caller.version, caller.typed),
            surface=surface,
            attributes=dict(caller.attributes),
        )
        self._client = _InternalClient(body)
        self._ended_at = 0.0
        self._given_up = False
        runtime.snapshots.note_use(snapshot.project_id)

    async def parts(self) -> AsyncGenerator[bytes]:
        reply = reply_of(self._state.surface)(self._client.send, self.request_id)
        task = asyncio.create_task(serve(self._runtime, self._state, self._client.receive, reply))
        _lingering.add(task)
        task.add_done_callback(self._ended)
        until = self._started + self._seconds
        try:
            while (part := await self._client.next_part(until)) is not None:
                yield part
        except TimeoutError:
            self._given_up = True
        finally:
            self._client.hang_up()
        if not task.done():
            await asyncio.wait({task}, timeout=_GRACE_SECONDS)

    @property
    def is_streamed(self) -> bool:
        return self._client.streamed

    @property
    def is_complete(self) -> bool:
        return self._client.complete

    def answer(self) -> InternalAnswer:
        client, seconds = self._client, (self._ended_at or time.perf_counter()) - self._started
        completion, error = client.read()
        if error is None and not client.complete:
            error = self._gave_up()
        if error is not None and not client.streamed:
            completion = None
        return InternalAnswer(self.request_id, seconds, completion, error, client.headers, self._state.record)

    def _gave_up(self) -> Reported:
        if self._given_up:
            message = f"The answer was not complete within {self._seconds:.3g} seconds"
            return Reported(503, "service_unavailable_error", "provider_timeout", message)
        return Reported(500, "api_error", "internal_error", "The request ended without an answer")

    def _ended(self, task: asyncio.Task[None]) -> None:
        _lingering.discard(task)
        self._ended_at = time.perf_counter()
        self._client.close()
        if not task.cancelled() and task.exception() is not None:
            logger.error("request.failed request_id=%s", self.request_id, exc_info=task.exception())


class _InternalClient:
    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._received: list[bytes] = []
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = False

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
            return
        part = message.get("body", b"")
        self._received.append(part)
        self.complete = not message.get("more_body", False)
        self._queue.put_nowait(part)
        if self.complete:
            self.close()

    def hang_up(self) -> None:
        self._gone.set()

    def close(self) -> None:
        self._queue.put_nowait(None)

    async def next_part(self, until: float) -> bytes | None:
        async with asyncio.timeout(max(until - time.perf_counter(), 0.0)):
            return await self._queue.get()

    @property
    def streamed(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def read(self) -> tuple[dict[str, Any] | None, Reported | None]:
        body = b"".join(self._received)
        if self.streamed:
            body = assembled(body)
        if not body:
            return None, None
        try:
            found = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None, _UNREADABLE
        if _is_deeper(found, _MAX_DEPTH):
            return None, _UNREADABLE
        error = found.pop("error", None) if self.status != 200 or self.streamed else None
        if not isinstance(error, dict):
            return found, None
        status = self.status if self.status != 200 else 503
        return found or None, Reported(status, error["type"], error["code"], error["message"], self.headers)


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
