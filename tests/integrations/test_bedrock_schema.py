"""Tests answers that follow a schema by models without a parameter for it: they call a tool that no client sees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator

from integrations.providers.base import ChatRequest
from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.request import build_body
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.adapters.assembled import assembled
from tests.integrations.bedrock_exchanges import CLAUDE, NOVA, bedrock_request, event
from tests.integrations.exchanges import decoded, run

SHAPE: Any = Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
CLAUDE_3 = "anthropic.claude-3-haiku-20240307-v1:0"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RESPONSE_FORMAT = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLED = [USER, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": "x"}]
USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}


def schema_request(model: str = NOVA, **fields: Any) -> ChatRequest:
    return bedrock_request(model, **{"response_format": RESPONSE_FORMAT, **fields})


def config_of(request: ChatRequest) -> dict[str, Any]:
    body, _ = build_body(request)
    report = ParamValidator().validate({"modelId": request.model, **body}, SHAPE)
    assert not report.has_errors(), report.generate_report()
    assert "outputConfig" not in body
    config: dict[str, Any] = body["toolConfig"]
    return config


def offered(config: dict[str, Any]) -> list[str]:
    return [tool["toolSpec"]["name"] for tool in config["tools"]]


def answered(
    request: ChatRequest, blocks: list[dict[str, Any]], stop: str = "tool_use", size: int = 3
) -> dict[str, Any]:
    """Returns the message and its finish reason, which are the same whole and streamed."""
    body = {"output": {"message": {"content": blocks}}, "stopReason": stop, "usage": USAGE}
    whole = json.loads(ADAPTER.parse_response(request, json.dumps(body).encode()).body)["choices"][0]
    wire = event("messageStart", role="assistant")
    for index, block in enumerate(blocks):
        if "text" in block:
            wire += event("contentBlockDelta", contentBlockIndex=index, delta=block)
        else:
            use = block["toolUse"]
            start = {"toolUse": {name: value for name, value in use.items() if name != "input"}}
            wire += event("contentBlockStart", contentBlockIndex=index, start=start)
            arguments = json.dumps(use["input"]) if use["input"] else ""
            for place in range(0, len(arguments), size):
                piece = {"toolUse": {"input": arguments[place : place + size]}}
                wire += event("contentBlockDelta", contentBlockIndex=index, delta=piece)
        wire += event("contentBlockStop", contentBlockIndex=index)
    wire += event("messageStop", stopReason=stop) + event("metadata", usage=USAGE)
    streamed = assembled(decoded(run(ADAPTER.stream(request), [wire])))
    assert streamed["message"] == whole["message"]
    assert streamed["finish_reason"] == whole["finish_reason"]
    return {**whole["message"], "finish_reason": whole["finish_reason"]}


def use(name: str, **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": f"t_{name}", "name": name, "input": given}}


@pytest.mark.parametrize(
    "model", [NOVA, CLAUDE_3, "anthropic.claude-opus-4-1-20250805-v1:0", "global.amazon.nova-2-lite-v1:0"]
)
def test_request__model_without_schemas__has_to_call_a_tool_of_that_schema(model: str) -> None:
    config = config_of(schema_request(model))
    assert config["tools"][0]["toolSpec"]["inputSchema"] == {"json": SCHEMA}
    assert (offered(config), config["toolChoice"]) == (["reply"], {"tool": {"name": "reply"}})


def test_request__beside_tools__one_of_them_has_to_be_called() -> None:
    config = config_of(schema_request(tools=[TOOL]))
    assert (offered(config), config["toolChoice"]) == (["look", "reply"], {"any": {}})
    config = config_of(schema_request(tools=[TOOL], tool_choice="none"))
    assert (offered(config), config["toolChoice"]) == (["reply"], {"tool": {"name": "reply"}})
    config = config_of(schema_request(messages=CALLED))
    assert (offered(config), config["toolChoice"]) == (["look", "reply"], {"tool": {"name": "reply"}})


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_request__a_required_call__of_the_clients_tools_alone(choice: Any) -> None:
    assert offered(config_of(schema_request(tools=[TOOL], tool_choice=choice))) == ["look"]


def test_request__name_that_is_a_tools_or_no_name__another() -> None:
    named = {"type": "json_schema", "json_schema": {"name": "look", "schema": SCHEMA}}
    assert offered(config_of(schema_request(response_format=named, tools=[TOOL]))) == ["look", "look_2"]
    odd = {"type": "json_schema", "json_schema": {"name": "my reply", "schema": SCHEMA}}
    assert offered(config_of(schema_request(response_format=odd))) == ["my_reply"]


def test_request__thinking_with_a_budget__left_out_and_named() -> None:
    body, warnings = build_body(schema_request("us.anthropic.claude-3-7-sonnet-20250219-v1:0", reasoning_effort="high"))
    assert "additionalModelRequestFields" not in body
    assert warnings == ("thinking: dropped, a forced tool choice excludes thinking",)


@pytest.mark.parametrize(("model", "schema"), [("anthropic.claude-v2:1", SCHEMA), (NOVA, {"type": "array"})])
def test_request__neither_schema_nor_tool__refused(model: str, schema: dict[str, Any]) -> None:
    response_format = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    with pytest.raises(UnsupportedParameterError, match="response_format"):
        build_body(schema_request(model, response_format=response_format))


def test_request__model_with_schemas__no_tool() -> None:
    assert "toolConfig" not in build_body(schema_request(CLAUDE))[0]


@pytest.mark.parametrize("talk", [[], [{"text": "<thinking> I answer. </thinking>"}]])
def test_answer__call_of_that_tool__the_content_alone(talk: list[dict[str, Any]]) -> None:
    message = answered(schema_request(), [*talk, use("reply", city="Köln")])
    assert (json.loads(message["content"]), message["finish_reason"]) == ({"city": "Köln"}, "stop")
    assert "tool_calls" not in message


def test_answer__cut_off__length() -> None:
    assert answered(schema_request(), [use("reply", city="K")], stop="max_tokens")["finish_reason"] == "length"


def test_answer__call_without_input__an_empty_object() -> None:
    assert answered(schema_request(), [use("reply")])["content"] == "{}"


def test_answer__call_of_a_tool_of_the_clients__a_call() -> None:
    message = answered(schema_request(tools=[TOOL]), [{"text": "I look."}, use("look", x=1)])
    assert (message["content"], message["finish_reason"]) == ("I look.", "tool_calls")
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["look"]


def test_answer__no_call_at_all__its_text() -> None:
    assert (
        answered(schema_request(), [{"text": '{"city"'}, {"text": ': "Rom"}'}], stop="end_turn")["content"]
        == '{"city": "Rom"}'
    )


def test_answer__of_a_model_with_schemas__a_tool_of_that_name_is_a_call() -> None:
    assert answered(schema_request(CLAUDE), [use("reply", x=1)])["finish_reason"] == "tool_calls"
