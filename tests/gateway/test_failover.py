"""The failover between attempts: which providers are asked, which failure the client sees, and what health and record
keep."""

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
import pytest

from analytics.contracts import Outcome, SpoolEntry
from core.errors import ApplicationError
from core.keys import KeyRecord
from gateway.deadlines import Deadlines
from gateway.pipeline.call import complete, open_stream
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.failover import first_answer
from gateway.pipeline.record import record
from gateway.pipeline.respond import StreamedAnswer, answer_error
from gateway.pipeline.watch import ClientWatch
from gateway.project_settings.settings import ProjectSettings, RoutingSettings
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.reply import Reply
from gateway.protocol.wire import LazyFields, decode_request
from gateway.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from integrations.health.monitor import HealthMonitor
from integrations.health.targets import CircuitState, Target
from integrations.pricing.cost import Price
from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from integrations.registry import adapter_for
from integrations.transport.base import Timeouts
from tests.fakes import scripted as play

BODY = b'{"model":"gpt-4o","messages":[{"role":"user","content":"hello there"}]}'
PRICE = Price(Decimal(2), Decimal(8))
TIMEOUTS = Timeouts(connect=5, first_byte=100, idle=100)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Answer:
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
        return self.streamed or self._pieces()

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

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.sent: list[UpstreamRequest] = []

    async def send(self, request: UpstreamRequest, timeouts: Timeouts) -> Answer:
        self.sent.append(request)
        return self.answers[len(self.sent) - 1]


class Scene:
    """A project with two providers, openai first, and one request of it."""

    def __init__(self, *answers: Answer, total: float = 1000.0, **routing: Any) -> None:
        credentials = {name: Credentials(n, name, "", "key") for n, name in enumerate(("openai", "groq"), 1)}
        project = uuid4()
        self.snapshot = ProjectSnapshot(
            project,
            str(project),
            {},
            credentials,
            {("openai", "gpt-4o"): PRICE},
            ProjectSettings(routing=RoutingSettings(**routing)),
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


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (FailureKind.UNAVAILABLE, FailureKind.CREDENTIALS, "provider_unavailable"),
        (FailureKind.RATE_LIMITED, FailureKind.NOT_FOUND, "provider_unavailable"),
        (FailureKind.TIMEOUT, FailureKind.UNUSABLE, "provider_timeout"),
        (FailureKind.CREDENTIALS, FailureKind.NOT_FOUND, "provider_error"),
        (FailureKind.NOT_FOUND, FailureKind.CREDENTIALS, "provider_error"),
        (FailureKind.NOT_FOUND, FailureKind.NOT_FOUND, "model_not_found"),
        (FailureKind.CREDENTIALS, FailureKind.TIMEOUT, "provider_timeout"),
    ],
)
async def test_failover__all_fail__the_client_is_told_what_may_pass(
    first: FailureKind, second: FailureKind, code: str
) -> None:
    scene = Scene(retry_enabled=False)

    async def call(attempt: Attempt) -> str:
        raise failing(second if attempt.is_fallback else first)

    with pytest.raises(ApplicationError) as caught:
        await scene.first_answer(call)
    assert caught.value.code == code


async def test_failover__time_is_up__nobody_else_is_asked_or_blamed() -> None:
    scene, asked = Scene(retry_enabled=False), []

    async def call(attempt: Attempt) -> str:
        asked.append(attempt.provider)
        scene.state.started -= 2000
        raise failing(FailureKind.TIMEOUT)

    scene.rest(scene.second)
    with pytest.raises(ApplicationError) as caught:
        await scene.first_answer(call)

    assert caught.value.code == "provider_timeout"
    assert asked == ["openai"]
    assert await scene.health.claim_probe(scene.second.target)


async def test_failover__fallback_with_a_moment_left__is_not_blamed_for_its_time_out() -> None:
    scene = Scene(retry_enabled=False)

    async def call(attempt: Attempt) -> str:
        # The first attempt uses up all but a moment of the time.
        scene.state.started -= 999.9 if attempt is scene.first else 0.2
        raise failing(FailureKind.TIMEOUT)

    for _ in range(4):
        scene.state.started = time.perf_counter()
        with pytest.raises(ApplicationError):
            await scene.first_answer(call)

    assert scene.health.health_of(scene.second.target).error_share == 0
    assert scene.circuit(scene.second) is CircuitState.CLOSED


async def test_failover__attempts_below_one__asks_once() -> None:
    scene, asked = Scene(retry_max_attempts=0), []

    async def call(attempt: Attempt) -> str:
        asked.append(attempt.provider)
        raise failing(FailureKind.UNAVAILABLE, retry_after=0.0)

    with pytest.raises(ApplicationError):
        await scene.first_answer(call)
    assert asked == ["openai", "groq"]


@pytest.mark.parametrize("reason", [UnsupportedParameterError("n", "no"), asyncio.CancelledError(), RuntimeError("x")])
async def test_failover__probe_that_proves_nothing__leaves_it_to_the_next_request(reason: BaseException) -> None:
    scene = Scene()

    async def call(attempt: Attempt) -> str:
        if attempt is scene.second:
            raise reason
        raise failing(FailureKind.CREDENTIALS)

    scene.rest(scene.second)
    with pytest.raises((ApplicationError, asyncio.CancelledError, RuntimeError)):
        await scene.first_answer(call)

    assert await scene.health.claim_probe(scene.second.target)


async def test_failover__answer_nested_too_deeply__is_unusable_and_the_next_one_serves() -> None:
    deep = Answer([b'{"choices":' + b"[" * 100_000])
    good = Answer([b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'])
    scene = Scene(deep, good)

    answer = await complete(scene.runtime, scene.context, [scene.first, scene.second], scene.state)

    assert b'"hi"' in answer.body
    assert [(a.provider, a.error) for a in scene.state.routing.failed] == [("openai", "unusable")]


async def test_stream__ended_without_a_word__bills_nothing_that_the_provider_did_not_say() -> None:
    scene = Scene(Answer([play.ROLE]), Answer(play.text_events("hi")))

    stream = await open_stream(scene.runtime, scene.context, [scene.first, scene.second], scene.state)

    assert stream.attempt is scene.second
    (failed,) = scene.state.routing.failed
    assert (failed.error, failed.prompt_tokens, failed.cost_usd) == ("unusable", 0, "")
    assert scene.state.routing.failed_costs == []


async def test_stream__client_leaves_before_the_first_word__what_the_provider_counted_is_kept() -> None:
    counted = play.chunk({"role": "assistant", "content": ""}, usage=play.USAGE)
    answer = Answer([counted], hangs=True)
    scene = Scene(answer)
    opening = asyncio.ensure_future(open_stream(scene.runtime, scene.context, [scene.first, scene.second], scene.state))
    await answer.silent.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening

    scene.state.outcome = Outcome.CANCELLED
    kept = scene.recorded()
    assert answer.closed
    assert (kept.prompt_tokens, kept.completion_tokens) == (11, 7)
    assert Decimal(kept.cost_usd) > 0
    (attempt,) = kept.attempts
    assert (attempt.provider, attempt.status, attempt.error) == ("openai", 0, "cancelled")
    assert attempt.cost_usd == kept.cost_usd


@pytest.mark.parametrize("fails", [True, False])
async def test_stream__outcome_comes_while_a_heartbeat_starts_it__after_the_start(settings: Any, fails: bool) -> None:
    settings.HEARTBEAT_SECONDS = 0.01
    scene, begun, sent = Scene(), asyncio.Event(), list[dict[str, Any]]()

    async def pieces() -> AsyncIterator[bytes]:
        await begun.wait()
        if fails:
            raise failing(FailureKind.CREDENTIALS)
        for event in play.text_events("hi"):
            yield event

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            begun.set()
            # The client reads slowly.
            for _ in range(20):
                await asyncio.sleep(0)
        sent.append(message)

    scene.upstream.answers.append(Answer([], streamed=pieces()))
    watch = ClientWatch(asyncio.Event().wait, asyncio.get_running_loop(), 5.0)  # type: ignore[arg-type] # never heard
    reply = Reply(send, "id")
    try:
        await StreamedAnswer(scene.runtime, scene.state, reply, watch).send(scene.context, [scene.first])
    except ApplicationError as error:
        await answer_error(reply, error, scene.state)

    assert [message["type"] for message in sent].index("http.response.start") == 0
    assert sent[-1]["body"].endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("word", ["", "word "])
async def test_stream__larger_than_any_answer_may_be__is_ended(word: str) -> None:
    scene, sent = Scene(retry_enabled=False), list[dict[str, Any]]()

    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield play.chunk({"role": "assistant", "content": word})

    async def send(message: Any) -> None:
        sent.append(message)

    answer = Answer([], streamed=pieces())
    scene.upstream.answers.append(answer)
    watch = ClientWatch(asyncio.Event().wait, asyncio.get_running_loop(), 5.0)  # type: ignore[arg-type] # never heard
    reply = Reply(send, "id")
    try:
        await StreamedAnswer(scene.runtime, scene.state, reply, watch).send(scene.context, [scene.first])
    except ApplicationError as error:
        await answer_error(reply, error, scene.state)

    assert b"is larger than" in sent[-1]["body"]
    assert answer.closed
    assert sum(len(message.get("body", b"")) for message in sent) < 2 << 20


async def test_stream__breaks_off_for_want_of_time__is_no_late_first_word() -> None:
    scene = Scene()

    async def pieces() -> AsyncIterator[bytes]:
        yield play.chunk({"role": "assistant", "content": "Hel"})
        scene.state.started -= 2000
        scene.clock.now += 2000
        yield play.chunk({"content": "lo"})

    scene.upstream.answers.append(Answer([], streamed=pieces()))
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    watch = ClientWatch(asyncio.Event().wait, asyncio.get_running_loop(), 5.0)  # type: ignore[arg-type] # never heard
    reply = Reply(send, "id")
    await StreamedAnswer(scene.runtime, scene.state, reply, watch).send(scene.context, [scene.first])

    assert b"provider_timeout" in sent[-1]["body"]
    (attempt,) = scene.recorded().attempts
    assert (attempt.status, attempt.error) == (200, "timeout")
    found = scene.health.health_of(scene.first.target)
    assert (found.samples, found.error_share) == (0, 1.0)


async def test_record__counts_beyond_all_reason__is_kept_without_a_cost() -> None:
    usage = b'"usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":2}' % 10**40
    choice = b'{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}'
    scene = Scene(Answer([b'{"id":"x","choices":[' + choice + b"]," + usage + b"}"]))

    answer = await complete(scene.runtime, scene.context, [scene.first], scene.state)
    scene.state.answer.usage = answer.usage

    assert not scene.recorded().cost_known
