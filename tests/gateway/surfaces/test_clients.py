"""Clients of other protocols, unchanged: OpenAI's SDK on the Responses API, Anthropic's SDK on the Messages API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import ToolParam
from pydantic import BaseModel

from tests.gateway.service import Gateway

MODEL = "openai_compatible/echo"
ASK = "Say hello"
_OTHER_PROJECT = {"x-project-id": "00000000-0000-4000-8000-000000000000"}


class City(BaseModel):
    name: str
    days: int


@pytest.fixture
def responses(sandboxed: Gateway) -> Iterator[openai.OpenAI]:
    with sandboxed.openai() as made:
        yield made


@pytest.fixture(params=["/api/gateway", "/api/gateway/v1"])
def messages(sandboxed: Gateway, request: pytest.FixtureRequest) -> Iterator[anthropic.Anthropic]:
    base_url = f"{sandboxed.service.base_url()}{request.param}"
    with anthropic.Anthropic(api_key=sandboxed.key, base_url=base_url, max_retries=0) as made:
        yield made


def test_responses__whole_and_streamed__are_the_same_answer(responses: openai.OpenAI, sandboxed: Gateway) -> None:
    whole = responses.responses.create(model=MODEL, input=ASK, instructions="Be brief.")

    with responses.responses.stream(model=MODEL, input=ASK, instructions="Be brief.") as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_response()

    assert whole.output_text
    assert streamed.output_text == whole.output_text
    assert whole.usage is not None
    assert whole.usage == streamed.usage
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"


def test_messages__whole_and_streamed__are_the_same_answer(messages: anthropic.Anthropic) -> None:
    ask = [{"role": "user", "content": ASK}]
    whole = messages.messages.create(model=MODEL, max_tokens=100, messages=ask)  # type: ignore[arg-type]

    with messages.messages.stream(model=MODEL, max_tokens=100, messages=ask) as stream:  # type: ignore[arg-type]
        streamed = stream.get_final_message()

    assert whole.content[0].type == "text"
    assert whole.content[0].text == streamed.content[0].text  # type: ignore[union-attr]
    assert (whole.stop_reason, whole.usage.output_tokens) == (streamed.stop_reason, streamed.usage.output_tokens)


def test_messages__tool__is_called_with_its_input(messages: anthropic.Anthropic) -> None:
    tool: ToolParam = {"name": "get_city", "input_schema": City.model_json_schema()}
    answer = messages.messages.create(
        model="openai_compatible/echo",
        max_tokens=100,
        messages=[{"role": "user", "content": "Paris"}],
        tools=[tool],
        tool_choice={"type": "tool", "name": "get_city"},
    )

    (call,) = [block for block in answer.content if block.type == "tool_use"]
    assert call.name == "get_city"
    assert answer.stop_reason == "tool_use"


def test_key_that_is_wrong__is_each_sdks_own_error(responses: openai.OpenAI, messages: anthropic.Anthropic) -> None:
    with pytest.raises(openai.AuthenticationError):
        responses.with_options(api_key="wrong").responses.create(model=MODEL, input=ASK)
    with pytest.raises(anthropic.AuthenticationError):
        messages.with_options(api_key="wrong").messages.create(
            model=MODEL, max_tokens=1, messages=[{"role": "user", "content": ASK}]
        )


def test_field_at_fault__is_named_as_the_client_calls_it(
    responses: openai.OpenAI, messages: anthropic.Anthropic
) -> None:
    of_no_role: Any = [{"role": "robot", "content": "x"}]
    with pytest.raises(openai.BadRequestError, match=r"input\[0\]\.role"):
        responses.responses.create(model=MODEL, input=of_no_role)
    with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\]"):
        messages.messages.create(model=MODEL, max_tokens=1, messages=[{"role": "user"}])  # type: ignore[list-item]


def test_response_of_an_earlier_request__is_not_kept(responses: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="keeps no responses"):
        responses.responses.retrieve("resp_1")
    for unknown in (responses.with_options(api_key="wrong"), responses.with_options(default_headers=_OTHER_PROJECT)):
        with pytest.raises(openai.AuthenticationError):
            unknown.responses.retrieve("resp_1")
        with pytest.raises(openai.AuthenticationError):
            unknown.responses.delete("resp_1")
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        responses.responses.create(model=MODEL, input=ASK, previous_response_id="resp_1")
