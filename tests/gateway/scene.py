"""A project with two providers whose transport is scripted, for tests of the pipeline without a service around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import msgspec

from analytics.request_log.record import SpoolEntry
from core.keys.services import KeyRecord
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.failover import first_answer
from gateway.pipeline.record import record
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.wire import LazyFields, decode_request
from gateway.runtime.deadlines import Deadlines
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from integrations.health.monitor import HealthMonitor
from integrations.health.targets import CircuitState, Target
from integrations.pricing.cost import Price
from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError
from integrations.registry import adapter_for
from integrations.transport.base import Sending, Timeouts

BODY = b'{"model":"gpt-4o","messages":[{"role":"user","content":"hello there"}]}'
PRICE = Price(Decimal(2), Decimal(8))
TIMEOUTS = Timeouts(connect=5, first_byte=100, idle=100)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class ScriptedAnswer:
    """An upstream's answer; a stream that `hangs` has sent `pieces` and stays silent."""

    pieces: list[bytes]
    hangs: bool = False
    closed: bool = False
    streamed: AsyncIterator[bytes] | None = None
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    async def read(self, **_: Any) -> bytes:
        return b"".join([piece async for piece in self.chunks()])

    def chunks(self) -> AsyncIterator[bytes]:
        self.streamed = self.streamed or self._pieces()
        return self.streamed

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        async for piece in self.chunks():
            if not take(piece):
                return False
        return True

    async def _pieces(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.hangs:
            self.silent.set()
            await asyncio.Event().wait()

    def close(self) -> None:
        self.closed = True


class Upstream:
    """A transport that gives these answers in turn."""

    def __init__(self, *answers: ScriptedAnswer) -> None:
        self.answers = list(answers)
        self.sent: list[UpstreamRequest] = []

    async def send(
        self, request: UpstreamRequest, timeouts: Timeouts, sending: Sending | None = None
    ) -> ScriptedAnswer:
        self.sent.append(request)
        return self.answers[len(self.sent) - 1]


class Scene:
    """A project with two providers, openai first, and one request of it."""

    def __init__(self, *answers: ScriptedAnswer, total: float = 1000.0, **routing: Any) -> None:
        credentials = {name: Credentials(n, name, "", "key") for n, name in enumerate(("openai", "groq"), 1)}
        project = uuid4()
        self.snapshot = ProjectSnapshot(
            project,
            str(project),
            {},
            credentials,
            {("openai", "gpt-4o"): PRICE},
            ProjectSettings(**routing),
            1,
        )
        self.clock = Clock()
        self.health = HealthMonitor("redis://127.0.0.1:1/0", clock=self.clock, draw=lambda: 0.0)
        self.upstream = Upstream(*answers)
        self.spooled: list[SpoolEntry] = []
        self.runtime = cast(
            Runtime,
            SimpleNamespace(
                health=self.health,
                deadlines=Deadlines(TIMEOUTS, body=100, ttft=100, total=total),
                transport=self.upstream,
                answer_bytes=1 << 20,
                loop=asyncio.get_running_loop(),
                spool=SimpleNamespace(append=self.spooled.append),
            ),
        )
        key = KeyRecord(1, project, "", frozenset({"gateway"}), None)
        self.request = decode_request(BODY)
        self.state = RequestState(
            "id", 0, time.perf_counter(), self.snapshot, key, RequestHeaders(), BODY, self.request
        )
        self.context = RequestContext(self.snapshot, RequestHeaders(), BODY, self.request, LazyFields(BODY))
        self.first = self.attempt("openai", "gpt-4o")
        self.second = msgspec.structs.replace(self.attempt("groq", "llama"), is_fallback=True, crosses_vendor=True)

    def attempt(self, provider: str, model: str) -> Attempt:
        credentials = self.snapshot.credentials[provider]
        target = Target(credentials.integration_id, provider, model)
        return Attempt(provider, model, credentials, adapter_for(provider), target)

    def first_answer(self, call: Callable[[Attempt], Awaitable[str]]) -> Awaitable[str]:
        return first_answer(self.runtime, [self.first, self.second], self.state, call)

    def rest(self, attempt: Attempt) -> None:
        """Opens the target's circuit and lets it rest until it may be tried."""
        for _ in range(5):
            self.health.note_failure(attempt.target, FailureKind.UNAVAILABLE, 1.0)
        self.clock.now += 5.0
        assert self.circuit(attempt) is CircuitState.HALF_OPEN

    def circuit(self, attempt: Attempt) -> CircuitState:
        return self.health.health_of(attempt.target).circuit

    def recorded(self) -> Any:
        record(self.runtime, self.state)
        (entry,) = self.spooled
        return entry.record


def failing(kind: FailureKind, **more: Any) -> ProviderError:
    return ProviderError(kind.value, kind=kind, **more)
