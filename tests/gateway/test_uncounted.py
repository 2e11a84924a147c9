"""Usage of answers whose provider has not counted tokens: every answer has a usage, and an estimate is marked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.wire import assert_closing_chunk, body, read_stream

ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
ROLE = {"role": "assistant", "content": None}


def completion(message: dict[str, Any], finish_reason: str, **extra: Any) -> bytes:
    """Returns a completion without usage, unless `extra` has it."""
    uncounted = {name: value for name, value in play.completion().items() if name != "usage"}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return json.dumps({**uncounted, "choices": [choice], **extra}).encode()


@pytest.mark.parametrize("extra", [{}, {"usage": None}, {"usage": {}}], ids=str)
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
