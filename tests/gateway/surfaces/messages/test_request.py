"""Tests the fields of a request to the Messages API as a chat completion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.protocol.wire import decode_request
from gateway.surfaces.messages.request import user_and_session
from gateway.surfaces.messages.surface import SURFACE
from prompts.content.messages import PromptMessage
from tests.gateway.surfaces.messages.clients import ask, chat

MARK = {"type": "ephemeral", "ttl": "1h"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Tells the weather.", "input_schema": SCHEMA}
UUID = "0e5d2c9a-6f0b-4f0e-9d57-3a1b2c3d4e5f"

Json = dict[str, Any]


def untranslatable(**fields: Any) -> tuple[str, ...]:
    return SURFACE.read(ask(**fields)).untranslatable


def test_request__plain__a_chat_completion_without_anything_else() -> None:
    read = SURFACE.read(ask())
    message = {"role": "user", "content": "Hello"}
    assert json.loads(read.body) == {"model": "sandbox/echo", "messages": [message], "max_tokens": 1024}
    assert (read.untranslatable, read.session_id) == ((), "")


def test_request__everything_that_translates__the_pipeline_takes_it() -> None:
    body = ask(
        system="Be brief.",
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        stop_sequences=["END"],
        stream=True,
        tools=[WEATHER],
        thinking={"type": "enabled", "budget_tokens": 2048},
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}},
    )
    read = SURFACE.read(body)
    request = decode_request(read.body)
    assert read.untranslatable == ()
    assert (request.max_tokens, request.temperature, request.top_p, request.stop) == (1024, 0.5, 0.9, ["END"])
    assert (request.stream, request.reasoning_effort) == (True, "high")
    assert request.thinking is not None and request.thinking.budget_tokens == 2048
    assert json.loads(read.body)["top_k"] == 40
    assert request.response_format is not None
    assert json.loads(read.body)["response_format"]["json_schema"] == {
        "name": "answer",
        "schema": SCHEMA,
        "strict": True,
    }


@pytest.mark.parametrize(
    ("system", "content"),
    [
        ("Be brief.", "Be brief."),
        ([{"type": "text", "text": "Be brief."}], "Be brief."),
        (
            [{"type": "text", "text": "A"}, {"type": "text", "text": "B", "cache_control": MARK}],
            [{"type": "text", "text": "A"}, {"type": "text", "text": "B", "cache_control": MARK}],
        ),
    ],
)
def test_system__string_or_blocks__the_first_message(system: Any, content: Any) -> None:
    assert chat(system=system)["messages"][0] == {"role": "system", "content": content}


def test_system__attribution_of_claude_code__is_for_anthropic_alone() -> None:
    attribution = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.82b; cc_entrypoint=cli;"}

    made = chat(system=[attribution, {"type": "text", "text": "Be brief."}])

    assert made["messages"][0] == chat(system=[{"type": "text", "text": "Be brief."}])["messages"][0]
    assert [message["role"] for message in chat(system=[attribution])["messages"]] == ["user"]


@pytest.mark.parametrize("system", ["", [], None])
def test_system__empty__no_message(system: Any) -> None:
    assert [message["role"] for message in chat(system=system)["messages"]] == ["user"]


def test_tools__custom__functions_with_their_extras() -> None:
    tool = {**WEATHER, "strict": True, "cache_control": MARK, "eager_input_streaming": True, "type": "custom"}
    (made,) = chat(tools=[tool])["tools"]
    function = {"name": "get_weather", "description": "Tells the weather.", "parameters": SCHEMA, "strict": True}
    assert made == {"type": "function", "function": function, "cache_control": MARK, "eager_input_streaming": True}


@pytest.mark.parametrize(
    "kind",
    ["bash_20250124", "text_editor_20250728", "computer_20251124", "code_execution_20250825"],
)
def test_tools__the_vendors_own__kept_and_named(kind: str) -> None:
    own = {"type": kind, "name": "tool"}
    read = SURFACE.read(ask(tools=[WEATHER, own]))
    assert json.loads(read.body)["tools"][1] == own
    assert read.untranslatable == (f"tools[1]: only Anthropic's hosts have the tool {kind}",)


def test_tools__called_from_the_vendors_code_only__named() -> None:
    (reason,) = untranslatable(tools=[{**WEATHER, "allowed_callers": ["code_execution_20250825"]}])
    assert reason.startswith("tools[0].allowed_callers: ")
    assert not untranslatable(tools=[{**WEATHER, "allowed_callers": ["direct", "code_execution_20250825"]}])


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        (
            {"type": "tool", "name": "get_weather"},
            {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
        ),
        (
            {"type": "any", "disable_parallel_tool_use": True},
            {"tool_choice": "required", "parallel_tool_calls": False},
        ),
    ],
)
def test_tool_choice__each_type__its_counterpart(choice: Json, expected: Json) -> None:
    made = chat(tools=[WEATHER], tool_choice=choice)
    assert {name: made[name] for name in ("tool_choice", "parallel_tool_calls") if name in made} == expected


def test_tool_choice__no_tools__left_out() -> None:
    assert "tool_choice" not in chat(tool_choice={"type": "auto"})


@pytest.mark.parametrize(("tier", "expected"), [("auto", "auto"), ("standard_only", "default")])
def test_service_tier__anthropics__chat_completions_name(tier: str, expected: str) -> None:
    assert chat(service_tier=tier)["service_tier"] == expected


def test_output__thinking_off__no_level_of_reasoning() -> None:
    made = chat(thinking={"type": "disabled"}, output_config={"effort": "low"})
    assert made["thinking"] == {"type": "disabled"}
    assert "reasoning_effort" not in made


def test_output__older_field__the_same_format() -> None:
    form = {"type": "json_schema", "schema": SCHEMA}
    assert chat(output_format=form)["response_format"] == chat(output_config={"format": form})["response_format"]


def test_output__unknown_settings__kept_or_named() -> None:
    budget = {"type": "tokens", "total": 20000}
    assert chat(output_config={"task_budget": budget})["output_config"] == {"task_budget": budget}
    (level,) = untranslatable(output_config={"effort": "utmost"})
    (form,) = untranslatable(output_config={"format": {"type": "regex"}})
    assert level.startswith("output_config.effort: ")
    assert form.startswith("output_config.format: ")


@pytest.mark.parametrize(
    ("user_id", "user", "session"),
    [
        ("end-user-7", "end-user-7", ""),
        (f"user_ab12_account_{UUID}_session_{UUID}", f"user_ab12_account_{UUID}", UUID),
        (f"user_ab12_account__session_{UUID}", "user_ab12_account_", UUID),
        ("user_in_session_7", "user_in_session_7", ""),
        (json.dumps({"device_id": "d1", "account_uuid": "a1", "session_id": UUID}), "a1", UUID),
        (json.dumps({"device_id": "d1", "account_uuid": "", "session_id": UUID}), "d1", UUID),
        ('{"device_id": 7}', '{"device_id": 7}', ""),
        ("{brace", "{brace", ""),
    ],
)
def test_metadata__user_id__user_and_session(user_id: str, user: str, session: str) -> None:
    read = SURFACE.read(ask(metadata={"user_id": user_id}))
    assert (json.loads(read.body)["user"], read.session_id) == (user, session)
    assert user_and_session(user_id) == (user, session)


def test_metadata__none__no_user() -> None:
    assert "user" not in chat(metadata={"user_id": None})
    assert "user" not in chat(metadata=None)


def test_fields__that_the_adapter_passes_on__kept() -> None:
    fields: Json = {
        "cache_control": MARK,
        "container": "container_1",
        "context_management": {"edits": []},
        "diagnostics": {"previous_message_id": "msg_1"},
        "inference_geo": "us",
        "mcp_servers": [{"type": "url", "url": "https://mcp.test", "name": "m"}],
        "speed": "fast",
    }
    made = chat(**fields)
    assert {name: made[name] for name in fields} == fields
    assert [reason.partition(":")[0] for reason in untranslatable(**fields)] == [
        "container",
        "inference_geo",
        "mcp_servers",
    ]


def test_fields__of_the_gateway__kept() -> None:
    fields: Json = {"models": ["gpt-4o"], "provider": {"sort": "latency"}, "prompt_config": "greeting"}
    made = chat(**fields)
    assert {name: made[name] for name in fields} == fields
    assert not untranslatable(**fields)


def test_fields__unknown__named() -> None:
    assert untranslatable(user_profile_id="p1", workspace_id=None, metadata={"trace": "t"}) == (
        "metadata.trace: a chat completion has no such field",
        "user_profile_id: a chat completion has no such field",
    )


def test_max_tokens__zero__named() -> None:
    (reason,) = untranslatable(max_tokens=0)
    assert reason.startswith("max_tokens: ")
    assert decode_request(SURFACE.read(ask(max_tokens=0)).body).max_tokens == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model": "m"}', b'{"model": "m","system":"Be \\"brief\\"."}'),
        (b' {"model": "m" }\n', b' {"model": "m" ,"system":"Be \\"brief\\"."}\n'),
        (b"{}", b'{"system":"Be \\"brief\\"."}'),
        (b'{"system": null, "n": [1.0,  2]}', b'{"system":"Be \\"brief\\".","n":[1.0,  2]}'),
        (b'{"n": 1e2, "system": ""}', b'{"n":1e2,"system":"Be \\"brief\\"."}'),
    ],
)
def test_with_prompt__no_instructions__the_text_and_the_clients_own_bytes(body: bytes, expected: bytes) -> None:
    assert SURFACE.with_prompt(body, [{"role": "system", "content": 'Be "brief".'}]) == expected


def test_with_prompt__turns__stand_before_the_clients_own_bytes() -> None:
    turns: list[PromptMessage] = [
        {"role": "system", "content": "A"},
        {"role": "developer", "content": "B"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a"},
    ]
    body = b'{"model":"m", "messages" : [ {"role":"user", "content":"\\u00e9"} ]}'

    changed = SURFACE.with_prompt(body, turns)

    own = b'{"role":"user","content":"u"},{"role":"assistant","content":"a"}, {"role":"user", "content":"\\u00e9"} ]'
    assert changed == b'{"model":"m","messages":[' + own + b',"system":"A\\n\\nB"}'
