"""The ends of streams: without output, by a client that leaves, by size or by time, and what the record bills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from analytics.request_log.record import Outcome
from core.errors import ApplicationError
from gateway.pipeline.call import complete, open_stream
from gateway.pipeline.respond import StreamedAnswer, answer_error
from gateway.pipeline.watch import ClientWatch
from gateway.protocol.reply import Reply
from integrations.providers.errors import FailureKind
from tests.fakes import scripted as play
from tests.gateway.scene import Scene, ScriptedAnswer, failing


async def test_stream__ended_without_a_word__bills_nothing_that_the_provider_did_not_say() -> None:
    scene = Scene(ScriptedAnswer([play.ROLE]), ScriptedAnswer(play.text_events("hi")))

    stream = await open_stream(scene.runtime, scene.context, [scene.first, scene.second], scene.state)

    assert stream.attempt is scene.second
    (failed,) = scene.state.routing.failed
    assert (failed.error, failed.prompt_tokens, failed.cost_usd) == ("unusable", 0, "")
    assert scene.state.routing.failed_costs == ()


async def test_stream__client_leaves_before_the_first_word__what_the_provider_counted_is_kept() -> None:
    counted = play.chunk({"role": "assistant", "content": ""}, usage=play.USAGE)
    answer = ScriptedAnswer([counted], hangs=True)
    scene = Scene(answer)
    opening = asyncio.ensure_future(open_stream(scene.runtime, scene.context, [scene.first, scene.second], scene.state))
    await answer.silent.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening

    scene.state.outcome = Outcome.CANCELLED
    record = scene.recorded()
    assert answer.closed
    assert (record.prompt_tokens, record.completion_tokens) == (11, 7)
    assert Decimal(record.cost_usd) > 0
    (attempt,) = record.attempts
    assert (attempt.provider, attempt.status, attempt.error) == ("openai", 0, "cancelled")
    assert attempt.cost_usd == record.cost_usd


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

    scene.upstream.answers.append(ScriptedAnswer([], streamed=pieces()))
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

    answer = ScriptedAnswer([], streamed=pieces())
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

    scene.upstream.answers.append(ScriptedAnswer([], streamed=pieces()))
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
    scene = Scene(ScriptedAnswer([b'{"id":"x","choices":[' + choice + b"]," + usage + b"}"]))

    answer = await complete(scene.runtime, scene.context, [scene.first], scene.state)
    scene.state.answer.usage = answer.usage

    assert not scene.recorded().cost_known
