"""Tests of OpenAI's `functions`, which came before tools: the provider gets tools, the client gets `function_call`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from integrations.providers.errors import UnsupportedParameterError
from integrations.registry import traits_of
from tests.fakes.dialects.story import Call, Story
from tests.integrations.adapters.conftest import having, subject_under_test
from tests.integrations.adapters.newcomer import NEWCOMER
from tests.integrations.adapters.subject import CLOCK, WEATHER, Subject

FUNCTIONS = [WEATHER["function"], CLOCK["function"]]
CALL = Call("call_1", "get_weather", {"city": "Bern"})
OTHER = Call("call_2", "get_time", {"zone": "CET"})
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "Weather and time in Bern?"},
    {"role": "assistant", "content": None, "function_call": {"name": "get_weather", "arguments": '{"city": "Bern"}'}},
    {"role": "function", "name": "get_weather", "content": "rain"},
    {"role": "assistant", "content": None, "function_call": {"name": "get_time", "arguments": '{"zone": "CET"}'}},
    {"role": "function", "name": "get_time", "content": "noon"},
]


def functions_of(provider: str) -> str:
    return "as_tools" if provider == NEWCOMER else traits_of(provider).functions


@pytest.fixture(params=[name for name in having("tools") if functions_of(name) != "always"])
def translated(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Yields the subjects for which functions are translated, at least on a fallback."""
    yield from subject_under_test(request)


@pytest.fixture(params=[name for name in having("tools") if functions_of(name) == "as_tools"])
def unknowing(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from subject_under_test(request)


def test_functions__on_a_fallback__tools_to_the_provider(translated: Subject) -> None:
    request = translated.ask(crosses_vendor=True, functions=FUNCTIONS, function_call="auto")
    assert request.tools == ("get_weather", "get_time")


def test_functions__direct__as_tools_where_they_are_not_known(tooled: Subject) -> None:
    upstream = tooled.build(functions=FUNCTIONS)
    as_they_are = tooled.adapter.traits.functions != "as_tools"
    assert (b'"functions"' in upstream.body) == as_they_are
    assert as_they_are or tooled.read(upstream).tools == ("get_weather", "get_time")
    assert not any("parallel_tool_calls" in warning for warning in upstream.warnings)


def test_history__of_function_calls__calls_and_their_results(translated: Subject) -> None:
    request = translated.ask(crosses_vendor=True, messages=HISTORY, functions=FUNCTIONS)
    assert [(call.name, call.arguments) for call in request.calls] == [
        ("get_weather", {"city": "Bern"}),
        ("get_time", {"zone": "CET"}),
    ]
    assert [text for _, text in request.results] == ["rain", "noon"]
    ids = [call.id for call in request.calls]
    assert [name for name, _ in request.results] in (ids, ["get_weather", "get_time"])
    again = translated.ask(
        crosses_vendor=True, messages=[*HISTORY, {"role": "user", "content": "And?"}], functions=FUNCTIONS
    )
    assert [call.id for call in again.calls] == ids


def test_answer__with_a_call__function_call_as_the_client_knows_it(unknowing: Subject) -> None:
    story = Story(calls=(CALL, OTHER) if unknowing.fake.can.parallel_tools else (CALL,), finish="tool_calls")
    completion = unknowing.whole(story, functions=FUNCTIONS)
    ChatCompletion.model_validate(completion, strict=True)
    message = completion["choices"][0]["message"]
    assert "tool_calls" not in message
    assert message["function_call"]["name"] == "get_weather"
    assert '"Bern"' in message["function_call"]["arguments"]
    assert completion["choices"][0]["finish_reason"] == "function_call"


def test_answer__of_who_sent_tools_too__tool_calls(tooled: Subject) -> None:
    completion = tooled.whole(Story(calls=(CALL,), finish="tool_calls"), functions=FUNCTIONS, tools=[CLOCK])
    assert completion["choices"][0]["finish_reason"] == "tool_calls"


def test_stream__with_calls__one_function_call(unknowing: Subject) -> None:
    calls = (CALL, OTHER) if unknowing.fake.can.parallel_tools else (CALL,)
    story = Story(text="Let me look.", calls=calls, finish="tool_calls")
    outcome = unknowing.streamed(story, functions=FUNCTIONS)
    assert outcome.error is None
    streamed: dict[str, str] = {"name": "", "arguments": ""}
    for chunk in outcome.chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        for choice in chunk["choices"]:
            assert "tool_calls" not in choice["delta"]
            for name, piece in choice["delta"].get("function_call", {}).items():
                streamed[name] += piece or ""
    whole = unknowing.message(story, functions=FUNCTIONS)["function_call"]
    assert streamed["name"] == whole["name"] == "get_weather"
    assert "Bern" in streamed["arguments"]
    assert "CET" not in streamed["arguments"]
    assert outcome.chunks[-1]["choices"][0]["finish_reason"] == "function_call"
    assert outcome.translator is not None
    assert outcome.translator.finish_reason == "function_call"


def test_function_call__by_name__that_tool_forced(translated: Subject) -> None:
    forced = {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
    fields: dict[str, Any] = {"functions": FUNCTIONS[:1], "function_call": {"name": "get_weather"}}
    expected = translated.ask(crosses_vendor=True, **forced).tool_choice
    assert translated.ask(crosses_vendor=True, **fields).tool_choice == expected


@pytest.mark.parametrize("value", [5, [], {"name": ""}, {"name": 5}, "sometimes", {"name": "f"}])
def test_function_call__that_is_none__refused_by_name(translated: Subject, value: Any) -> None:
    with pytest.raises(UnsupportedParameterError, match="function_call"):
        translated.build(crosses_vendor=True, function_call=value)


@pytest.mark.parametrize("call", [5, "get_weather", {"arguments": "{}"}, {"name": 5}])
def test_history__with_a_call_that_is_none__refused(translated: Subject, call: Any) -> None:
    messages = [{"role": "assistant", "content": "x", "function_call": call}, HISTORY[0]]
    with pytest.raises(UnsupportedParameterError, match="function_call"):
        translated.build(crosses_vendor=True, messages=messages)


def test_function_call__without_effect__leaves_no_trace(translated: Subject) -> None:
    messages = [*HISTORY[:1], {"role": "assistant", "content": "rain", "function_call": None}, HISTORY[0]]
    plain = [{name: value for name, value in one.items() if name != "function_call"} for one in messages]
    upstream = translated.build(crosses_vendor=True, messages=messages, function_call="none", functions=[])
    assert translated.read(upstream) == translated.ask(crosses_vendor=True, messages=plain)
    assert not upstream.warnings
