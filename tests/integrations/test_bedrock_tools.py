"""Tests tools and their choice in requests to Converse."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.providers.bedrock.request import build_body
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.bedrock_exchanges import CLAUDE, NOVA, bedrock_request
from tests.integrations.bedrock_requests import (
    CALL,
    CALLED,
    GPT_OSS,
    LLAMA,
    NOVA_2,
    OWN_PROFILE,
    PNG,
    RESULT,
    TOOL,
    USER,
    checked,
    native,
    warned,
)


def test_tools__offered_called_answered__native_blocks() -> None:
    image = [{"type": "text", "text": "a photo"}, {"type": "image_url", "image_url": {"url": PNG}}]
    messages = [
        USER,
        {"role": "assistant", "content": "Wait.", "tool_calls": [CALL, {**CALL, "id": "call 2/ä"}]},
        {**RESULT, "content": image},
        {"role": "tool", "tool_call_id": "call 2/ä", "content": "", "is_error": True},
    ]
    tool = {"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}
    body = native(messages=messages, tools=[tool], tool_choice="auto")
    spec = {"name": "look", "inputSchema": {"json": {"type": "object"}}, "description": "Looks"}
    assert body["toolConfig"] == {"tools": [{"toolSpec": spec}], "toolChoice": {"auto": {}}}
    _, assistant, answered = body["messages"]
    assert assistant["content"][:2] == [
        {"text": "Wait."},
        {"toolUse": {"toolUseId": "call_1", "name": "look", "input": {"a": 1}}},
    ]
    strange = assistant["content"][2]["toolUse"]["toolUseId"]
    assert strange != "call 2/ä"
    photo = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    assert answered["content"] == [
        {"toolResult": {"toolUseId": "call_1", "content": [{"text": "a photo"}, photo]}},
        {"toolResult": {"toolUseId": strange, "content": [{"json": {}}], "status": "error"}},
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        ("auto", {"auto": {}}),
        ("required", {"any": {}}),
        ({"type": "function", "function": {"name": "look"}}, {"tool": {"name": "look"}}),
    ],
)
def test_tool_choice__each_form__native(choice: Any, expected: Any) -> None:
    assert native(tools=[TOOL], tool_choice=choice)["toolConfig"].get("toolChoice") == expected


def test_tool_choice__some_tools__only_those_offered() -> None:
    other = {"type": "function", "function": {"name": "other"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "other"}}]}
    config = native(tools=[TOOL, other], tool_choice={"type": "allowed_tools", "allowed_tools": allowed})["toolConfig"]
    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == ["other"]
    assert config["toolChoice"] == {"any": {}}


def test_tool_choice__none__no_tools_unless_the_history_holds_calls() -> None:
    assert "toolConfig" not in native(tools=[TOOL], tool_choice="none")
    assert not warned(tools=[TOOL], tool_choice="none")
    history: dict[str, Any] = {"messages": [USER, CALLED, RESULT], "tools": [TOOL], "tool_choice": "none"}
    body = native(**history)
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["look"]
    assert body["system"] == [{"text": "Answer without calling a tool."}]
    (warning,) = warned(**history)
    assert warning.startswith("tool_choice: dropped")


def test_tools__none_offered_beside_a_history_of_calls__declared_by_name() -> None:
    body = native(messages=[USER, CALLED, RESULT])
    spec = {"name": "look", "inputSchema": {"json": {"type": "object", "properties": {}}}}
    assert body["toolConfig"] == {"tools": [{"toolSpec": spec}]}


def test_parallel_tool_calls__off__claudes_own_choice_and_a_warning_elsewhere() -> None:
    choice = {"type": "function", "function": {"name": "look"}}
    body = native(tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
    assert "toolChoice" not in body["toolConfig"]
    assert body["additionalModelRequestFields"] == {
        "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True}
    }
    assert warned(NOVA, tools=[TOOL], parallel_tool_calls=False)
    assert not warned(NOVA, tools=[TOOL], parallel_tool_calls=True)


def test_tools__strict__where_it_is_known() -> None:
    tool = {"type": "function", "function": {"name": "look", "strict": True}}
    assert native(tools=[tool])["toolConfig"]["tools"][0]["toolSpec"]["strict"] is True
    assert "strict" not in native(NOVA, tools=[tool])["toolConfig"]["tools"][0]["toolSpec"]
    assert warned(NOVA, tools=[tool]) == ("tools.look.strict: dropped, bedrock has no counterpart",)


def test_tools__of_the_vendor__passed_on_or_refused() -> None:
    grounding = {"systemTool": {"name": "nova_grounding"}}
    assert native(NOVA_2, tools=[grounding, TOOL])["toolConfig"]["tools"][-1] == grounding
    with pytest.raises(UnsupportedParameterError, match="web_search"):
        build_body(bedrock_request(tools=[{"type": "web_search"}]))


@pytest.mark.parametrize("model", [NOVA_2, "us.amazon.nova-premier-v1:0"])
def test_web_search__model_with_grounding__amazons_own_tool(model: str) -> None:
    grounding = {"systemTool": {"name": "nova_grounding"}}
    body, warnings = checked(bedrock_request(model, web_search_options={"search_context_size": "medium"}))
    assert (body["toolConfig"], warnings) == ({"tools": [grounding]}, ())
    assert native(model, web_search_options={}, tools=[TOOL, grounding])["toolConfig"]["tools"][1:] == [grounding]
    assert native(model, web_search_options={}, tools=[TOOL], tool_choice="none")["toolConfig"]["tools"] == [grounding]
    place = {"type": "approximate", "approximate": {"country": "DE"}}
    assert warned(model, web_search_options={"user_location": place, "search_context_size": "high"}) == (
        "web_search_options.user_location: dropped, bedrock has no counterpart",
        "web_search_options.search_context_size: dropped, bedrock has no counterpart",
    )


@pytest.mark.parametrize("model", [CLAUDE, NOVA, LLAMA, GPT_OSS, OWN_PROFILE])
def test_web_search__model_without__refused(model: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build_body(bedrock_request(model, web_search_options={}))
    assert caught.value.parameter == "web_search_options"


def test_tool_choice__forced_at_a_model_that_cannot__refused() -> None:
    with pytest.raises(UnsupportedParameterError, match="tool_choice"):
        build_body(bedrock_request("us.anthropic.claude-opus-5-5", tools=[TOOL], tool_choice="required"))


def test_result__with_sound__refused() -> None:
    sound = {"type": "input_audio", "input_audio": {"format": "wav", "data": "UklGRg=="}}
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [sound]},
    ]
    with pytest.raises(UnsupportedParameterError, match="sound"):
        native(NOVA, messages=turns, tools=[TOOL])


def test_tool__schema_without_a_type__of_an_object() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"properties": {"at": {}}}}}
    tool_spec = native(CLAUDE, tools=[tool])["toolConfig"]["tools"][0]["toolSpec"]
    assert tool_spec["inputSchema"]["json"] == {"type": "object", "properties": {"at": {}}}
