"""The failover between attempts: which providers are called, which failure the client sees, and what health monitor and
record get."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from core.errors import ApplicationError
from gateway.pipeline.call import complete
from gateway.pipeline.context import Attempt
from integrations.health.targets import CircuitState
from integrations.providers.errors import FailureKind, UnsupportedParameterError
from integrations.providers.usage import Usage
from tests.gateway.scene import Scene, ScriptedAnswer, failing
from tests.tables.cases import tabled


@tabled
async def test_failover__all_fail__the_client_gets_the_transient_failure(
    first: FailureKind, second: FailureKind, code: str
) -> None:
    scene = Scene(retry_enabled=False)

    async def call(attempt: Attempt) -> str:
        raise failing(second if attempt.is_fallback else first)

    with pytest.raises(ApplicationError) as caught:
        await scene.first_answer(call)
    assert caught.value.code == code


async def test_failover__time_is_up__no_other_is_called_or_blamed() -> None:
    scene, called = Scene(retry_enabled=False), []

    async def call(attempt: Attempt) -> str:
        called.append(attempt.provider)
        scene.state.started -= 2000
        raise failing(FailureKind.TIMEOUT)

    scene.rest(scene.second)
    with pytest.raises(ApplicationError) as caught:
        await scene.first_answer(call)

    assert caught.value.code == "provider_timeout"
    assert called == ["openai"]
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


async def test_failover__attempts_below_one__calls_once() -> None:
    scene, called = Scene(retry_max_attempts=0), []

    async def call(attempt: Attempt) -> str:
        called.append(attempt.provider)
        raise failing(FailureKind.UNAVAILABLE, retry_after=0.0)

    with pytest.raises(ApplicationError):
        await scene.first_answer(call)
    assert called == ["openai", "groq"]


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


async def test_failover__probe_is_under_way__the_target_is_left_alone() -> None:
    scene, called = Scene(), []

    async def call(attempt: Attempt) -> str:
        called.append(attempt.provider)
        return "answer"

    scene.rest(scene.first)
    assert await scene.health.claim_probe(scene.first.target)
    assert await scene.first_answer(call) == "answer"
    assert called == ["groq"]


async def test_record__of_a_target_with_limits_of_its_own__tokens_count_once() -> None:
    scene = Scene()
    scene.first = msgspec.structs.replace(scene.first, is_limited=True)

    async def call(attempt: Attempt) -> str:
        scene.state.answer.usage = Usage(500, 200)
        return "answer"

    await scene.first_answer(call)
    scene.recorded()

    use, number = scene.health.use, scene.first.target.integration_id
    assert use.is_used_up(number, rpm=None, tpm=700)
    assert not use.is_used_up(number, rpm=None, tpm=701)


async def test_failover__answer_nested_too_deeply__is_unusable_and_the_next_one_serves() -> None:
    deep = ScriptedAnswer([b'{"choices":' + b"[" * 100_000])
    good = ScriptedAnswer(
        [b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}']
    )
    scene = Scene(deep, good)

    answer = await complete(scene.runtime, scene.context, [scene.first, scene.second], scene.state)

    assert b'"hi"' in answer.body
    assert [(a.provider, a.error) for a in scene.state.routing.failed] == [("openai", "unusable")]
