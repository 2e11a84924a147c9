"""Usage of answers whose provider has not counted tokens: every answer has a usage, and an estimate is marked."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.fakes import scripted as play
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.service import PRICED_MODEL
from tests.gateway.surfaces.ways import WHOLE_AND_STREAMED, Way
from tests.gateway.wire import assert_closing_chunk, assert_error, body, read_stream
from tests.tables.cases import tabled

ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
ROLE = {"role": "assistant", "content": None}


def completion(message: dict[str, Any], finish_reason: str, **extra: Any) -> bytes:
    """Returns a completion without usage, unless `extra` has it."""
    uncounted = {name: value for name, value in play.completion().items() if name != "usage"}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return json.dumps({**uncounted, "choices": [choice], **extra}).encode()


UNREADABLE: list[Any] = [None, {}, [], "many", {"prompt_tokens": None, "completion_tokens": None}, {"tokens": 7}]
ZERO: list[Any] = [ZEROS, {"prompt_tokens": 11, "completion_tokens": 0, "total_tokens": 11}]


@pytest.mark.parametrize("extra", [{}, *({"usage": usage} for usage in UNREADABLE)], ids=str)
def test_answer__uncounted__an_estimate_that_says_so(scripted: Scripted, extra: dict[str, Any]) -> None:
    gateway, _ = scripted(play.raw(200, completion({"role": "assistant", "content": "word " * 40}, "stop", **extra)))

    response = gateway.post(body())

    usage = response.json()["usage"]
    assert usage["estimated"] is True
    assert 40 <= usage["completion_tokens"] <= 100
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    record = gateway.record(response)
    assert record.tokens_estimated
    assert (record.prompt_tokens, record.completion_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])


@pytest.mark.parametrize("content", [None, ""])
def test_answer__of_a_filter_in_front_of_the_model__zeros(scripted: Scripted, content: str | None) -> None:
    gateway, _ = scripted(play.raw(200, completion({**ROLE, "content": content}, "content_filter")))

    response = gateway.post(body())

    assert response.json()["usage"] == ZEROS
    record = gateway.record(response)
    assert (record.prompt_tokens, record.completion_tokens, record.tokens_estimated) == (0, 0, False)


def test_answer__cut_by_a_filter_behind_the_model__an_estimate(scripted: Scripted) -> None:
    gateway, _ = scripted(play.raw(200, completion({**ROLE, "content": "Well, "}, "content_filter")))

    assert gateway.post(body()).json()["usage"]["estimated"] is True


def test_stream__uncounted__an_estimate_that_says_so(scripted: Scripted) -> None:
    gateway, _ = scripted(play.stream(play.ROLE, play.chunk({"content": "word"}), play.FINISH, play.DONE))

    response = gateway.post(body(stream=True))

    assert assert_closing_chunk(read_stream(response.content))["estimated"] is True
    assert gateway.record(response).tokens_estimated


def test_stream__of_a_filter_in_front_of_the_model__zeros(scripted: Scripted) -> None:
    gateway, _ = scripted(play.stream(play.ROLE, play.chunk({}, "content_filter"), play.DONE))

    response = gateway.post(body(stream=True))

    assert assert_closing_chunk(read_stream(response.content)) == ZEROS
    record = gateway.record(response)
    assert (record.prompt_tokens, record.completion_tokens, record.tokens_estimated) == (0, 0, False)


@pytest.mark.parametrize("usage", [*UNREADABLE, *ZERO], ids=str)
@WHOLE_AND_STREAMED
@pytest.mark.parametrize("surface", ["chat", "messages", "responses"])
def test_answer_with_a_text__uncounted__marked_for_the_client_and_counted(
    routed: Routed, surface: str, stream: bool, usage: Any
) -> None:
    whole = play.raw(200, completion({"role": "assistant", "content": "word " * 40}, "stop", usage=usage))
    piece, end = play.chunk({"content": "word " * 40}), play.chunk(None, usage=usage)
    step = play.stream(play.ROLE, piece, play.FINISH, end, play.DONE) if stream else whole
    gateway, _ = routed(openai_compatible=[step])
    way = Way(surface, "openai_compatible/any")

    response = way.ask(gateway, way.body(stream=stream))

    assert b'"estimated":true' in response.content, response.text
    record = gateway.record(response)
    assert record.tokens_estimated
    assert record.prompt_tokens > 5
    assert 40 <= record.completion_tokens <= 100


@tabled
@WHOLE_AND_STREAMED
def test_budget__answers_counted_in_other_forms__used_up(
    scripted: Scripted, usage: dict[str, Any], counts: tuple[int, int] | None, stream: bool
) -> None:
    whole = play.raw(200, completion({"role": "assistant", "content": "word"}, "stop", usage=usage))
    piece, end = play.chunk({"content": "word"}), play.chunk(None, usage=usage)
    gateway, _ = scripted(play.stream(play.ROLE, piece, play.FINISH, end, play.DONE) if stream else whole)
    gateway.service.set_routing(gateway.project_id, session_budget_usd="0.01")
    asked = body(model=f"openai/{PRICED_MODEL}", stream=stream, max_tokens=5)

    answers: list[httpx2.Response] = []

    def ask() -> httpx2.Response:
        answers.append(gateway.post(asked, headers={"x-svc-session-id": "one"}))
        return answers[-1]

    refused = gateway.service.until(ask, lambda answer: answer.status_code == 429)

    assert_error(refused, 429, "session_budget_exceeded")
    record = gateway.record(answers[0])
    assert record.prompt_tokens + record.completion_tokens == 1_900_030
    assert record.tokens_estimated is (counts is None)
    assert counts in (None, (record.prompt_tokens, record.completion_tokens))


def test_first_event_of_messages__translated__estimates_the_prompt_until_it_is_counted(routed: Routed) -> None:
    gateway, _ = routed(openai_compatible=[play.answer("Hello")])
    way = Way("messages", "openai_compatible/any")

    response = way.ask(gateway, way.body("word " * 400, stream=True))

    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    (start,) = [event["message"]["usage"] for event in events if event["type"] == "message_start"]
    (end,) = [event["usage"] for event in events if event["type"] == "message_delta"]
    assert 400 <= start["input_tokens"] <= 800
    assert (end["input_tokens"], end["output_tokens"]) == (play.USAGE["prompt_tokens"], play.USAGE["completion_tokens"])
