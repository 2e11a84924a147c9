"""Tests the fakes of the Responses API against the official SDK: it reads their answers, and they read its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from integrations.providers.usage import Usage
from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.openai_responses import ENCRYPTED, RESPONSES
from tests.fakes.dialects.server import DialectServer, answer_with, breaks
from tests.fakes.dialects.story import Call, Story
from tests.tables.cases import tabled

CALLS = (Call("call_1", "weather", {"city": "Oslo"}), Call("call_2", "time", {}))
STORY = Story(
    text="Hallo 👋 “Welt”",
    reasoning="Let me think.",
    signature="c2Vj",
    calls=CALLS,
    finish="tool_calls",
    usage=Usage(prompt_tokens=30, completion_tokens=12, cache_read_tokens=8, reasoning_tokens=4),
)
TOOL: Any = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}
INPUT: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"{ENCRYPTED}c2Vj"},
    {"type": "function_call", "call_id": "c", "name": "weather", "arguments": '{"a": 1}'},
    {"type": "function_call_output", "call_id": "c", "output": "18"},
]


@pytest.fixture
def client(server: DialectServer) -> Iterator[OpenAI]:
    access = FAKES["openai"].credentials(server.base_url("openai"))
    with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as made:
        yield made


def test_fake__whole_answer__is_as_the_sdk_reads_it(server: DialectServer, client: OpenAI) -> None:
    server.play("openai", answer_with(FAKES["openai"], STORY))
    answer = client.responses.create(
        model="gpt-5.5",
        input=INPUT,
        tools=[TOOL],
        store=False,
        max_output_tokens=64,
    )

    thought, _, *calls = answer.output
    assert answer.output_text == STORY.text
    assert thought.type == "reasoning"
    assert (thought.summary[0].text, thought.encrypted_content) == (STORY.reasoning, f"{ENCRYPTED}c2Vj")
    assert [(call.call_id, call.name) for call in calls if call.type == "function_call"] == [
        (call.id, call.name) for call in CALLS
    ]
    assert answer.usage is not None
    assert answer.usage.input_tokens_details.cached_tokens == 8
    assert answer.usage.output_tokens_details.reasoning_tokens == 4
    (request,) = server.requests_of("openai", FAKES["openai"])
    assert (request.system, request.turns, request.results) == ("Be brief.", (("user", "Weather?"),), (("c", "18"),))
    assert (request.signatures, request.tools, request.max_tokens) == (("c2Vj",), ("weather",), 64)


def test_fake__stream__is_as_the_sdk_reads_it(server: DialectServer, client: OpenAI) -> None:
    server.play("openai", answer_with(FAKES["openai"], STORY))

    with client.responses.stream(model="gpt-5.5", input=INPUT, tools=[TOOL], store=False) as stream:
        final = stream.get_final_response()

    assert final.output_text == STORY.text
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call", "function_call"]


def test_fake__stream_that_breaks__is_a_failed_response(server: DialectServer, client: OpenAI) -> None:
    server.play("openai", breaks(RESPONSES["openai"], STORY, "overloaded"))

    events = list(client.responses.create(model="gpt-5.5", input=INPUT, store=False, stream=True))

    assert events[-1].type == "response.failed"


@tabled
def test_fake__request_that_openai_refuses__is_refused(
    server: DialectServer, client: OpenAI, change: dict[str, Any], problem: str
) -> None:
    server.play("openai", answer_with(FAKES["openai"], STORY))

    with pytest.raises(openai.BadRequestError, match=problem):
        client.post("/responses", body={"model": "gpt-5.5", "input": INPUT, "store": False} | change, cast_to=object)
