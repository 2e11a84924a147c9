"""Tests JSON schemas for models without that feature: the model answers by the input of a tool, the client gets
content."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import ChatRequest
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import chat_request, credentials, decoded, run

Json = dict[str, Any]
OLD = "claude-3-7-sonnet-20250219"
USER = {"role": "user", "content": "Where?"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "place", "description": "A place.", "schema": SCHEMA}}
PING = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}
ANSWER = {"type": "tool_use", "id": "toolu_1", "name": "answer_after_schema", "input": {"city": "Zürich"}}
CALL = {"type": "tool_use", "id": "toolu_2", "name": "ping", "input": {}}
TEXT = {"type": "text", "text": "Here it is:"}


def schema_request(model: str = OLD, **fields: Any) -> ChatRequest:
    return chat_request(model, **{"messages": [USER], "response_format": FORMAT, **fields})


def body_of(model: str = OLD, **fields: Any) -> tuple[Json, tuple[str, ...]]:
    request = ADAPTER.build_request(schema_request(model, **fields), credentials("anthropic"))
    return json.loads(request.body), request.warnings


def test_schema__of_a_model_without__a_tool_that_has_to_be_called_and_named() -> None:
    body, warnings = body_of()
    (tool,) = body["tools"]
    assert (tool["name"], tool["input_schema"]) == ("answer_after_schema", SCHEMA)
    assert "place" in tool["description"]
    assert "A place." in tool["description"]
    forced = {"type": "tool", "name": "answer_after_schema", "disable_parallel_tool_use": True}
    assert body["tool_choice"] == forced
    assert "output_config" not in body
    (warning,) = warnings
    assert warning.startswith("response_format: ")


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [
        (None, ["ping", "answer_after_schema"], {"type": "any", "disable_parallel_tool_use": True}),
        ("auto", ["ping", "answer_after_schema"], {"type": "any", "disable_parallel_tool_use": True}),
        (
            "none",
            ["ping", "answer_after_schema"],
            {"type": "tool", "name": "answer_after_schema", "disable_parallel_tool_use": True},
        ),
        ("required", ["ping"], {"type": "any"}),
        ({"type": "function", "function": {"name": "ping"}}, ["ping"], {"type": "tool", "name": "ping"}),
    ],
)
def test_schema__beside_tools_of_the_client__an_answer_or_a_call(choice: Any, tools: list[str], sent: Json) -> None:
    body, _ = body_of(tools=[PING], tool_choice=choice)
    assert [tool["name"] for tool in body["tools"]] == tools
    assert body["tool_choice"] == sent


def test_schema__and_thinking__thinking_is_dropped_and_named() -> None:
    body, warnings = body_of(reasoning_effort="high")
    assert "thinking" not in body
    assert [warning.partition(":")[0] for warning in warnings] == ["response_format", "reasoning_effort"]


@pytest.mark.parametrize("schema", [{"type": "array", "items": {}}, {"anyOf": [SCHEMA]}])
def test_schema__that_no_tool_takes__refused(schema: Json) -> None:
    response_format = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with pytest.raises(UnsupportedParameterError, match="response_format"):
        body_of(response_format=response_format)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-1", "claude-opus-5"])
def test_schema__of_a_model_that_follows_one__no_tool(model: str) -> None:
    body, warnings = body_of(model)
    assert "tools" not in body
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert not warnings


@pytest.mark.parametrize(
    ("content", "reason", "expected", "calls", "finish"),
    [
        ([ANSWER], "tool_use", {"city": "Zürich"}, 0, "stop"),
        ([TEXT, ANSWER], "tool_use", {"city": "Zürich"}, 0, "stop"),
        ([{**ANSWER, "input": {}}], "max_tokens", {}, 0, "length"),
        ([CALL], "tool_use", None, 1, "tool_calls"),
        ([TEXT], "refusal", "Here it is:", 0, "content_filter"),
        ([TEXT], "end_turn", "Here it is:", 0, "stop"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_answer__that_came_as_input__is_content(
    content: list[Json], reason: str, expected: Any, calls: int, finish: str, streamed: bool
) -> None:
    message = {"id": "m", "type": "message", "model": OLD, "content": content, "stop_reason": reason}
    if streamed:
        choice = assembled(decoded(run(ADAPTER.stream(schema_request(stream=True)), [wire(message)])))
    else:
        choice = json.loads(ADAPTER.parse_response(schema_request(), json.dumps(message).encode()).body)["choices"][0]
    text = choice["message"]["content"]
    assert (json.loads(text) if isinstance(expected, dict) else text or None) == expected
    assert len(choice["message"].get("tool_calls") or ()) == calls
    assert choice["finish_reason"] == finish


def test_answer__to_a_request_without_a_schema__a_call_like_any_other() -> None:
    message = {"id": "m", "type": "message", "model": OLD, "content": [ANSWER], "stop_reason": "tool_use"}
    completion = json.loads(
        ADAPTER.parse_response(schema_request(response_format=None), json.dumps(message).encode()).body
    )
    assert completion["choices"][0]["finish_reason"] == "tool_calls"


def wire(message: Json) -> bytes:
    events: list[Json] = [{"type": "message_start", "message": {**message, "content": []}}]
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        start = {**block, "text": ""} if is_text else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        whole = block["text"] if is_text else json.dumps(block["input"]) if block["input"] else ""
        for piece in (whole[:5], whole[5:]):
            delta = {"type": "text_delta", "text": piece}
            call = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta if is_text else call})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}})
    events.append({"type": "message_stop"})
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
