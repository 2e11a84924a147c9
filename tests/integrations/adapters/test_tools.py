"""Tests that tools are offered, chosen and called, and that their results reach the provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from tests.fakes.dialects.story import Call, ReadRequest, Story
from tests.integrations.adapters.assembled import assembled
from tests.integrations.adapters.subject import CLOCK, PNG, USER, WEATHER, Subject, data_url, is_named
from tests.integrations.adapters.subject import refusal_or_request as refusal_or

OSLO = Call("callAAA01", "get_weather", {"city": "Oslo", "note": 'ä "quoted" 👋'})
ZONE = Call("callBBB02", "get_time", {"zone": "Europe/Oslo"})
TOOLS = [WEATHER, CLOCK]
NAMES = ("get_weather", "get_time")


def call_of(call: Call) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def after(*calls: Call, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a conversation in which the calls were made and answered."""
    message = {"role": "assistant", "content": None, "tool_calls": [call_of(call) for call in calls]}
    return [USER, message, *results]


def result(call: Call, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "content": content, **more}


def result_of(request: ReadRequest, position: int) -> str:
    """Returns the text of a result, which has to name the call, or its function where calls have no ids."""
    call = request.calls[position]
    assert request.results[position][0] in (call.id, call.name)
    return request.results[position][1]


def test_tools__where_the_dialect_has_none__refused(subject: Subject) -> None:
    result = refusal_or(subject, tools=TOOLS)
    assert isinstance(result, UnsupportedParameterError) is not subject.fake.can.tools


def test_tools__offered__by_name_and_in_order(tooled: Subject) -> None:
    upstream = tooled.build(tools=TOOLS)
    assert tooled.read(upstream).tools == NAMES
    assert not upstream.warnings
    for schema in (tool["function"]["parameters"]["properties"] for tool in TOOLS):
        assert all(f'"{name}"'.encode() in upstream.body for name in schema)


def test_tools__without_description_or_parameters__offered(tooled: Subject) -> None:
    assert tooled.ask(tools=[{"type": "function", "function": {"name": "ping"}}]).tools == ("ping",)


@pytest.mark.parametrize("choice", ["none", "auto", "required"])
def test_tool_choice__word__as_sent_or_named(tooled: Subject, choice: str) -> None:
    result = refusal_or(tooled, tools=TOOLS, tool_choice=choice)
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter == "tool_choice"
        return
    request = tooled.read(result)
    understood = {
        "none": request.tool_choice == "none" or not request.tools,
        "auto": request.tool_choice in ("", "auto") and request.tools == NAMES,
        "required": request.tool_choice == "required" and request.tools == NAMES,
    }
    assert understood[choice] or is_named("tool_choice", result)


def test_tool_choice__one_function__that_one_or_named(tooled: Subject) -> None:
    result = refusal_or(tooled, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "get_time"}})
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter == "tool_choice"
        return
    request = tooled.read(result)
    only = request.tool_choice == "required" and request.tools == ("get_time",)
    assert request.tool_choice == "function:get_time" or only or is_named("tool_choice", result)


def test_tool_choice__some_of_the_tools__only_those_or_named(tooled: Subject) -> None:
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_time"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    result = refusal_or(tooled, tools=TOOLS, tool_choice=choice)
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter == "tool_choice"
        return
    fewer = json.loads(result.body) != json.loads(tooled.build(tools=TOOLS).body)
    assert fewer or is_named("tool_choice", result)


def test_parallel_tool_calls__switched_off__sent_or_named(tooled: Subject) -> None:
    request = tooled.build(tools=TOOLS, parallel_tool_calls=False)
    differs = json.loads(request.body) != json.loads(tooled.build(tools=TOOLS).body)
    assert differs or is_named("parallel_tool_calls", request)


@pytest.mark.parametrize(
    "content", ["18 degrees", [{"type": "text", "text": "18 degrees"}], json.dumps({"report": "18 degrees"})]
)
def test_tool_result__text_parts_or_json__arrives_at_its_call(tooled: Subject, content: Any) -> None:
    request = tooled.ask(tools=TOOLS, messages=after(OSLO, results=[result(OSLO, content)]))
    assert [(call.name, dict(call.arguments)) for call in request.calls] == [(OSLO.name, OSLO.arguments)]
    assert "18 degrees" in result_of(request, 0)


def test_tool_result__of_parallel_calls__each_at_its_own(tooled: Subject) -> None:
    request = tooled.ask(
        tools=TOOLS, messages=after(OSLO, ZONE, results=[result(OSLO, "18 degrees"), result(ZONE, "noon")])
    )
    assert [call.name for call in request.calls] == [OSLO.name, ZONE.name]
    assert "18 degrees" in result_of(request, 0)
    assert "noon" in result_of(request, 1)


def test_tool_result__then_a_question__both_arrive(tooled: Subject) -> None:
    messages = [*after(OSLO, results=[result(OSLO, "18 degrees")]), {"role": "user", "content": "And tomorrow?"}]
    request = tooled.ask(tools=TOOLS, messages=messages)
    assert "18 degrees" in result_of(request, 0)
    assert request.turns[-1] == ("user", "And tomorrow?")


def test_tool_result__of_a_failed_call__its_text_arrives(tooled: Subject) -> None:
    failed = result(OSLO, "no such city", is_error=True)
    assert "no such city" in result_of(tooled.ask(tools=TOOLS, messages=after(OSLO, results=[failed])), 0)


def test_tool_result__empty__is_a_result(tooled: Subject) -> None:
    request = tooled.ask(tools=TOOLS, messages=after(OSLO, results=[result(OSLO, "")]))
    assert result_of(request, 0) in ("", "{}", '{"result":""}', '{"result": ""}')


def test_tool_result__with_an_image__arrives_or_is_refused_or_named(tooled: Subject) -> None:
    content = [{"type": "text", "text": "a photo"}, {"type": "image_url", "image_url": {"url": data_url()}}]
    outcome = refusal_or(tooled, tools=TOOLS, messages=after(OSLO, results=[result(OSLO, content)]))
    if isinstance(outcome, UnsupportedParameterError):
        assert outcome.parameter == "messages"
        return
    request = tooled.read(outcome)
    assert "a photo" in result_of(request, 0)
    assert PNG in [image for _, image in request.images] or is_named("image", outcome)


def test_tools__history_with_calls_but_no_tools_now__still_a_request(tooled: Subject) -> None:
    request: UpstreamRequest = tooled.build(messages=after(OSLO, results=[result(OSLO, "18 degrees")]))
    assert "18 degrees" in result_of(tooled.read(request), 0)


@pytest.mark.parametrize("text", ["", "Let me see. "])
@pytest.mark.parametrize("calls", [(OSLO,), (OSLO, ZONE), (OSLO, Call("callCCC03", OSLO.name, {}))])
@pytest.mark.parametrize("stream", [False, True])
def test_call__whole_and_streamed__names_arguments_and_distinct_ids(
    tooled: Subject, text: str, calls: tuple[Call, ...], stream: bool
) -> None:
    if not tooled.fake.can.parallel_tools:
        calls = calls[:1]
    story = Story(text=text, calls=calls, finish="tool_calls")
    if stream:
        choice = assembled(tooled.streamed(story, tools=TOOLS).chunks)
    else:
        choice = tooled.whole(story, tools=TOOLS)["choices"][0]
    message = choice["message"]
    assert choice["finish_reason"] == "tool_calls"
    assert message["content"] == (text or None)
    found = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]
    assert found == [(call.name, call.arguments) for call in calls]
    ids = [call["id"] for call in message["tool_calls"]]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert {call["type"] for call in message["tool_calls"]} == {"function"}


@pytest.mark.parametrize("stream", [False, True])
def test_call__answered_and_sent_back__the_provider_knows_it_again(tooled: Subject, stream: bool) -> None:
    """The loop of every agent: the answer's message is appended unchanged, then the results."""
    story = Story(calls=(OSLO, ZONE) if tooled.fake.can.parallel_tools else (OSLO,), finish="tool_calls")
    chunks = tooled.streamed(story, tools=TOOLS).chunks if stream else []
    message = assembled(chunks)["message"] if stream else tooled.message(story, tools=TOOLS)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": f"result {position}"}
        for position, call in enumerate(message["tool_calls"])
    ]
    request = tooled.ask(tools=TOOLS, messages=[USER, message, *results])
    assert [(call.name, dict(call.arguments)) for call in request.calls] == [(c.name, c.arguments) for c in story.calls]
    for position, _ in enumerate(story.calls):
        assert f"result {position}" in result_of(request, position)
