"""Checks mock and load driver with the official SDK, because a wrong instrument measures nothing."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import Response

from benchmarks import mock_upstream, payloads
from benchmarks.load import Driver, Plan, Result, percentiles
from tests.waiting import TIMEOUT_SECONDS

PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models/mock:generateContent")
PACE = 500.0


@pytest.fixture
async def mock_port() -> AsyncIterator[int]:
    server, port = await mock_upstream.start(events_per_second=PACE)
    yield port
    server.close()
    await server.wait_closed()


def ask(port: int, *, stream_words: int = 0) -> tuple[str, list[int]]:
    with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="sk-test", max_retries=0) as client:
        if not stream_words:
            whole = client.chat.completions.create(model="mock", messages=[{"role": "user", "content": "Hello"}])
            assert whole.usage is not None
            return whole.choices[0].message.content or "", [whole.usage.completion_tokens]
        stream = client.chat.completions.create(
            model="mock",
            messages=[{"role": "user", "content": "Hello"}],
            max_tokens=stream_words,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return text, [chunk.usage.completion_tokens for chunk in chunks if chunk.usage]


async def test_mock__plain_request__gives_the_answer_with_usage(mock_port: int) -> None:
    text, tokens = await asyncio.to_thread(ask, mock_port)

    assert text.endswith(payloads.ANSWER_END.decode())
    assert tokens == [payloads.ANSWER_TOKENS]
    assert len(payloads.answer()) == payloads.ANSWER_BYTES


async def test_mock__stream_with_usage__gives_as_many_words_as_max_tokens(mock_port: int) -> None:
    text, tokens = await asyncio.to_thread(ask, mock_port, stream_words=7)

    assert text.split() == [payloads.EVENT_WORD.decode()] * 7
    assert tokens == [7]


async def test_mock__stream_without_usage__sends_none(mock_port: int) -> None:
    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{mock_port}/v1", api_key="sk-test") as client:
        stream = await client.chat.completions.create(
            model="mock", messages=[{"role": "user", "content": "Hello"}], max_tokens=3, stream=True
        )
        chunks = [chunk async for chunk in stream]

    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


async def measured(plan: Plan) -> tuple[Result, float]:
    """Returns the first window with an answer, since a short one may have none on a busy machine, and the seconds from
    its plan's first request to its end."""
    while True:
        borders: list[str] = []
        started = time.perf_counter()
        result = await Driver(plan, borders.append).run()
        assert borders == ["start", "stop"]
        if result.errors or (result.requests and (result.first_word_p50 is not None or not plan.stream_events)):
            return result, time.perf_counter() - started


async def test_driver__closed_loop__finds_every_answer_right(mock_port: int) -> None:
    result, _ = await measured(Plan(mock_port, connections=4, seconds=0.2, warmup=0.05))

    assert result.requests > 0
    assert result.errors == 0
    assert result.latency_p50 is not None


async def test_driver__fixed_rate__sends_no_more_than_that(mock_port: int) -> None:
    result, elapsed = await measured(Plan(mock_port, connections=4, seconds=0.5, warmup=0.05, rate=100))

    # An answer that was due before the window may come in it.
    assert 0 < result.requests <= 100 * elapsed
    assert result.errors == 0


async def test_driver__paced_streams__counts_their_words(mock_port: int) -> None:
    result, elapsed = await measured(
        Plan(mock_port, connections=4, seconds=0.5, stream_events=20, events_per_second=PACE)
    )

    assert result.errors == 0
    # The first word of a stream does not wait, and a mock that was held up catches up.
    assert 0 < result.words <= 4 * PACE * elapsed * 1.5
    assert result.lateness_p99 is not None


async def test_driver__path_unknown_to_the_server__counts_failures(mock_port: int) -> None:
    result, _ = await measured(Plan(mock_port, path="/nowhere", connections=2, seconds=0.1, warmup=0.05))

    assert result.requests == 0
    assert set(result.error_kinds) == {"status 404"}


async def test_driver__answer_without_the_expected_end__counts_failures(mock_port: int) -> None:
    # The list of models is a 200 as well, and no completion.
    result, _ = await measured(Plan(mock_port, path="/v1/models", connections=1, seconds=0.1, warmup=0.05))

    assert set(result.error_kinds) == {"wrong answer"}


async def test_mock__client_gone_in_a_stream__counts_it_as_aborted(mock_port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", mock_port)
    body = payloads.request_body("mock", stream_events=1_000_000)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    await reader.readuntil(payloads.EVENT_WORD)
    writer.close()
    await writer.wait_closed()

    async with asyncio.timeout(TIMEOUT_SECONDS):
        while b'"streams_aborted": 1' not in await asyncio.to_thread(stats, mock_port):
            continue


def stats(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/mock/stats") as answer:
        body: bytes = answer.read()
        return body


@pytest.mark.parametrize("size", [1024, 60_000])
def test_request_body__size_given__has_it(size: int) -> None:
    assert len(payloads.request_body("mock", size=size)) == size


def test_percentiles__nothing_measured__gives_none() -> None:
    assert percentiles([]) == (None, None)


def test_percentiles__hundred_values__gives_median_and_last_but_one_in_milliseconds() -> None:
    assert percentiles([value / 1000 for value in range(100)]) == (50.0, 99.0)


def ask_responses(port: int, *, stream_words: int = 0) -> tuple[str, int]:
    with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="sk-test", max_retries=0) as client:
        if stream_words:
            with client.responses.stream(model="mock", input="Hello", max_output_tokens=stream_words) as stream:
                answer: Response = stream.get_final_response()
        else:
            answer = client.responses.create(model="mock", input="Hello")
    assert answer.usage is not None
    return answer.output_text, answer.usage.output_tokens


async def test_mock__responses__are_what_the_sdk_reads(mock_port: int) -> None:
    text, tokens = await asyncio.to_thread(ask_responses, mock_port)
    words, count = await asyncio.to_thread(ask_responses, mock_port, stream_words=7)

    assert (text.endswith(payloads.ANSWER_END.decode()), tokens) == (True, payloads.ANSWER_TOKENS)
    assert (words.split(), count) == ([payloads.EVENT_WORD.decode()] * 7, 7)


@pytest.mark.parametrize("path", PATHS)
async def test_driver__stream_of_each_protocol__counts_each_word_once(mock_port: int, path: str) -> None:
    plan = Plan(mock_port, path, connections=2, seconds=0.2, warmup=0.05, stream_events=10, events_per_second=PACE)

    result, _ = await measured(plan)

    assert (result.errors, result.error_kinds) == (0, {})
    assert result.requests > 0


def test_request__of_each_protocol__has_the_size_that_is_asked_for() -> None:
    for path in PATHS:
        assert len(payloads.request_body("mock", size=1024, protocol=payloads.protocol_of(path))) == 1024
