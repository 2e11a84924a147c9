"""Tests Cohere's whole answers: contents, calls, usage, citations and log probabilities."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.cohere import ADAPTER
from integrations.providers.usage import Usage
from tests.integrations.adapters.assembled import as_the_sdk_does
from tests.integrations.cohere_answers import (
    CITATION,
    END,
    READ,
    REQUEST,
    START,
    choice_of,
    event,
    parsed,
    streamed,
    text,
    text_delta,
)
from tests.integrations.exchanges import decoded


@pytest.mark.parametrize(
    ("content", "expected", "reasoning"),
    [
        ([text("Hello")], "Hello", None),
        ([text("one "), text("two")], "one two", None),
        ([{"type": "thinking", "thinking": "hm"}, text("a")], "a", "hm"),
        ([{"type": "thinking", "thinking": "h"}, {"type": "thinking", "thinking": "m"}], "", "h\nm"),
        ([], "", None),
        (None, "", None),
        ([{"type": "from_the_future", "x": 1}, text("a")], "a", None),
    ],
    ids=str,
)
def test_answer__contents__text_and_reasoning(content: Any, expected: str, reasoning: str | None) -> None:
    answer = parsed(content=content)
    message = choice_of(answer)["message"]
    assert (message["content"], message.get("reasoning_content")) == (expected, reasoning)
    assert json.loads(answer.body)["id"] == "i1"
    assert answer.usage == READ


def test_answer__calls_with_a_plan__plan_is_reasoning() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"function": {"name": "g"}},
    ]
    choice = choice_of(parsed("TOOL_CALL", tool_calls=calls, tool_plan="I will call f."))
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I will call f.",
        "provider_specific_fields": {"tool_plan": "I will call f."},
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
            {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert choice["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"tokens": {"input_tokens": 12.0, "output_tokens": 3.0}}, Usage(12, 3)),
        (
            {"billed_units": {"input_tokens": 12, "output_tokens": 3}},
            Usage(12, 3, billed_prompt_tokens=12, billed_completion_tokens=3, estimated=True),
        ),
        (
            {"tokens": {"input_tokens": 21}, "billed_units": {"input_tokens": 14, "output_tokens": 9}},
            Usage(21, 9, billed_prompt_tokens=14, billed_completion_tokens=9, estimated=True),
        ),
        (
            {"tokens": {"input_tokens": None, "output_tokens": 9}, "billed_units": {"input_tokens": 14}},
            Usage(14, 9, billed_prompt_tokens=14, billed_completion_tokens=0, estimated=True),
        ),
        (
            {"tokens": {}, "billed_units": {"input_tokens": 14, "output_tokens": 0}},
            Usage(14, 0, billed_prompt_tokens=14, billed_completion_tokens=0),
        ),
        (
            {"tokens": {"input_tokens": 12, "output_tokens": -3}, "cached_tokens": 99},
            Usage(12, 0, cache_read_tokens=12),
        ),
        ({"tokens": {"input_tokens": "12", "output_tokens": True}}, Usage(12, 0)),
    ],
    ids=str,
)
def test_usage__odd_counts__never_wrong(usage: Any, expected: Usage | None) -> None:
    assert parsed(usage=usage, content=[text("a")]).usage == expected


def test_specific__citations_and_plan__whole_and_streamed_the_same() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    whole = choice_of(parsed("TOOL_CALL", tool_calls=calls, tool_plan="I will.", citations=[CITATION, CITATION]))
    fields = whole["message"]["provider_specific_fields"]
    assert fields == {"tool_plan": "I will.", "citations": [CITATION, CITATION]}
    events = (
        event("tool-plan-delta", {"tool_plan": "I "}),
        event("tool-plan-delta", {"tool_plan": "will."}),
        event("tool-call-start", {"tool_calls": calls[0]}, index=0),
        *(event("citation-start", {"citations": CITATION}, index=i) for i in (0, 1)),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    )
    message = as_the_sdk_does(decoded(streamed(START, *events)))
    streamed_fields = message["provider_specific_fields"]
    assert [{**one, "index": 0} for one in streamed_fields.pop("citations")] == [{**CITATION, "index": 0}] * 2
    assert streamed_fields == {"tool_plan": "I will."}


def test_specific__unknown_reason__kept_beside_the_ordinary_one() -> None:
    expected = {"finish_reason": "FROM_THE_FUTURE"}
    assert choice_of(parsed("FROM_THE_FUTURE", content=[text("a")]))["message"]["provider_specific_fields"] == expected
    end = {"type": "message-end", "delta": {"finish_reason": "FROM_THE_FUTURE"}}
    assert as_the_sdk_does(decoded(streamed(START, text_delta("a"), end)))["provider_specific_fields"] == expected


def test_answer__without_usage__zeros() -> None:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert json.loads(parsed(usage=None, content=[text("a")]).body)["usage"] == zeros


def test_citations__of_a_second_block__positions_in_the_whole_text() -> None:
    content = [text("One. "), text("About Ruby"), {"type": "thinking", "thinking": "x"}]
    message = choice_of(parsed(content=content, citations=[{**CITATION}]))["message"]
    (note,) = message["annotations"]
    start, end = note["url_citation"]["start_index"], note["url_citation"]["end_index"]
    assert message["content"][start:end] == "Ruby"
    assert message["citations"] == [CITATION]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"sources": [{"type": "tool", "id": "https://x/a", "tool_output": {"text": "t"}}]}, 1),
        ({"sources": [{"type": "tool", "id": "call_1:0", "tool_output": {"text": "t"}}]}, 0),
        ({"sources": [{"type": "tool", "tool_output": {"url": "https://x"}}, {"type": "tool", "id": "http://y"}]}, 2),
        ({"type": "PLAN"}, 0),
        ({"type": "THINKING_CONTENT"}, 0),
        ({"start": None}, 0),
        ({"sources": None}, 0),
    ],
    ids=str,
)
def test_citations__sources__annotated_when_they_have_an_address(changes: dict[str, Any], count: int) -> None:
    message = choice_of(parsed(content=[text("About Ruby")], citations=[{**CITATION, **changes}]))["message"]
    assert len(message.get("annotations", [])) == count
    assert len(message["citations"]) == 1


def test_logprobs__pieces__a_token_each() -> None:
    items = [{"text": "Hi", "token_ids": [1, 2], "logprobs": [-0.5, -0.25]}, {"token_ids": [3]}]
    body = {"id": "i", "message": {"content": [text("Hi")]}, "finish_reason": "COMPLETE", "logprobs": items}
    choice = choice_of(ADAPTER.parse_response(REQUEST, json.dumps(body).encode()))
    assert choice["logprobs"] == {
        "content": [{"token": "Hi", "logprob": -0.75, "bytes": [72, 105], "top_logprobs": []}]
    }
    delta = {**text_delta("Hi"), "logprobs": items[0]}
    chunk = decoded(streamed(START, delta, END))[1]
    assert chunk["choices"][0]["logprobs"] == choice["logprobs"]
    assert chunk["choices"][0]["delta"] == {"content": "Hi"}
