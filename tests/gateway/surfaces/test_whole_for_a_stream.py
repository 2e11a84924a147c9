"""A provider that answers whole although it was asked for a stream: the client gets the stream that it asked for."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.fakes.dialects.story import Call, Story
from tests.fakes.scripted import Step, raw
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import Routed
from tests.gateway.native import canonical
from tests.gateway.surfaces.golden.order import CHECKS
from tests.gateway.surfaces.ways import EVERY_WAY, WHOLE_AND_STREAMED, Way, answering

CALLS = (Call("callAAA01", "get_weather", {"city": "Oslo"}), Call("callBBB02", "get_time", {}))
TEXT = "Grüße 👋" * 20_000
"""A text whose answer is longer than the beginning of a stream that is looked at for an error."""


def whole(provider: str, story: Story) -> Step:
    """Returns a step that answers whole, whatever was asked for."""
    step = answering(provider, story)

    async def answer(request: Received, connection: Connection) -> None:
        path = request.path.replace(":streamGenerateContent", ":generateContent")
        await step(dataclasses.replace(request, path=path, body=b"{}"), connection)

    return answer


@EVERY_WAY
@pytest.mark.parametrize("story", [Story(text="Hello"), Story(text=TEXT, calls=CALLS, finish="tool_calls")])
def test_whole_answer__to_a_request_for_a_stream__is_streamed(routed: Routed, way: Way, story: Story) -> None:
    if not way.can_call:
        story = dataclasses.replace(story, calls=(), finish="stop")
    gateway, scripts = routed(**{way.provider: [whole(way.provider, story)]})

    response = way.ask(gateway, way.body(stream=True))

    answer = way.read(response)
    CHECKS[way.surface](response.content)
    received = scripts[way.provider].received[-1]
    assert ":streamGenerateContent" in received.path or json.loads(received.body)["stream"] is True
    assert answer.text == story.text
    assert answer.calls == tuple((call.name, canonical(dict(call.arguments))) for call in story.calls)
    assert (answer.finish, answer.usage) == (story.finish, (21, 0, 9))
    record = gateway.record(response)
    assert (record.outcome, record.is_stream, record.finish_reason) == ("success", True, story.finish)
    assert (record.prompt_tokens, record.completion_tokens, record.tokens_estimated) == (21, 9, False)


@EVERY_WAY
@WHOLE_AND_STREAMED
def test_object__that_is_no_answer__is_an_error(routed: Routed, way: Way, stream: bool) -> None:
    gateway, _ = routed({"retry_enabled": False}, **{way.provider: [raw(200, b'{"hello": "world"}')]})

    response = way.ask(gateway, way.body(stream=stream))

    assert response.status_code == 500, response.text
    assert gateway.record(response).outcome == "error"


def test_whole_answer__that_nobody_counted__is_estimated(routed: Routed) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    gateway, _ = routed(groq=[raw(200, json.dumps({"choices": [choice]}).encode())])

    response = Way("chat").ask(gateway, Way("chat").body(stream=True))

    assert Way("chat").read(response).text == "Hello"
    record = gateway.record(response)
    assert record.tokens_estimated
    assert record.completion_tokens > 0
