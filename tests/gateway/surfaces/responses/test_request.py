"""Requests of the Responses API as chat completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import ApplicationError
from gateway.protocol.wire import decode_request
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.responses.surface import SURFACE
from prompts.content.messages import PromptMessage

BE_KIND: list[PromptMessage] = [{"role": "system", "content": "Be kind."}]
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}


def read(**fields: Any) -> SurfaceRequest:
    return SURFACE.read(json.dumps({"model": "gpt-5", "input": "Hi", **fields}).encode())


def chat(**fields: Any) -> dict[str, Any]:
    found = read(**fields)
    assert found.untranslatable == ()
    decode_request(found.body)
    made: dict[str, Any] = json.loads(found.body)
    return made


def test_text_and_instructions__become_messages() -> None:
    assert chat(instructions="Be brief.") == {
        "model": "gpt-5",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    }


def test_turn_with_calls__becomes_one_message_of_the_assistant() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I ask."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
        {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"x":1}'},
        {"type": "function_call", "call_id": "b", "name": "weather", "arguments": '{"x":2}'},
        {"type": "function_call_output", "call_id": "a", "output": "sun"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "rain"}]},
        {"type": "message", "role": "assistant", "content": "Both."},
    ]

    user, turn, first, second, last = chat(input=items)["messages"]

    assert user == {"role": "user", "content": [{"type": "text", "text": "Weather?"}]}
    assert (turn["reasoning_content"], turn["content"]) == ("I ask.", "One moment.")
    assert [call["id"] for call in turn["tool_calls"]] == ["a", "b"]
    assert turn["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"x":1}'}
    assert (first["role"], first["tool_call_id"], first["content"]) == ("tool", "a", "sun")
    assert second["content"] == [{"type": "text", "text": "rain"}]
    assert last == {"role": "assistant", "content": "Both."}


def test_images_and_files__become_parts() -> None:
    content = [
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"},
        {"type": "input_file", "file_url": "https://files.example/a.pdf"},
    ]

    (message,) = chat(input=[{"role": "user", "content": content}])["messages"]

    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
        {"type": "document_url", "document_url": {"url": "https://files.example/a.pdf"}},
    ]


def test_parameters__get_the_names_of_chat_completions() -> None:
    made = chat(
        max_output_tokens=99,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
        tools=[{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
        tool_choice={"type": "function", "name": "f"},
        store=False,
        stream=True,
        prompt_config="support",
    )

    assert made["max_completion_tokens"] == 99
    assert made["reasoning_effort"] == "low"
    assert made["verbosity"] == "low"
    assert made["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
    }
    assert made["tools"] == [{"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}]
    assert made["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert (made["stream"], made["prompt_config"]) == (True, "support")
    assert "store" not in made


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"tools": [{"type": "file_search"}]}, "tools[0]"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input[0].content[0]"),
        ({"previous_response_id": "r", "provider": {"only": ["openai"]}}, "previous_response_id"),
    ],
)
def test_what_only_the_vendor_has__is_named(fields: dict[str, Any], named: str) -> None:
    (problem,) = read(**fields).untranslatable

    assert problem.startswith(f"{named}: ")


@pytest.mark.parametrize(
    ("fields", "code", "named"),
    [
        ({"input": None}, "missing_field", "input"),
        ({"input": 5}, "invalid_value", "input"),
        ({"input": [{"role": "robot", "content": "x"}]}, "invalid_value", "input[0].role"),
        ({"input": [{"role": "user"}]}, "missing_field", "input[0].content"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "missing_field", "input[0].call_id"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "missing_field",
            "input[0].content[0].text",
        ),
        ({"tools": [{"name": "f"}]}, "missing_field", "tools[0].type"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "missing_field", "text.format.schema"),
        ({"previous_response_id": "resp_1"}, "unsupported_parameter", "previous_response_id"),
        ({"background": True}, "unsupported_parameter", "background"),
    ],
)
def test_fault__is_refused_by_the_clients_own_field(fields: dict[str, Any], code: str, named: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        read(**fields)

    assert (caught.value.status, caught.value.code) == (400, code)
    assert caught.value.message.startswith(f"{named}: ")


def test_prompt__becomes_the_instructions_and_nothing_else_changes() -> None:
    changed = SURFACE.with_prompt(b'{"model":"m","input":[{"x":1.50}]}', BE_KIND)

    assert changed == b'{"model":"m","input":[{"x":1.50}],"instructions":"Be kind."}'


TURNS: list[PromptMessage] = [
    {"role": "developer", "content": "Answer in German."},
    {"role": "user", "content": "Good day"},
    {"role": "assistant", "content": "Guten Tag"},
]
BEFORE = b'{"role":"user","content":"Good day"},{"role":"assistant","content":"Guten Tag"}'


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b'"input":[ {"x":1.50}]', b'"input":[' + BEFORE + b', {"x":1.50}]'),
        (b'"input":"H\\u0069"', b'"input":[' + BEFORE + b',{"role":"user","content":"H\\u0069"}]'),
        (b'"input":[ ]', b'"input":[' + BEFORE + b" ]"),
        (b'"store":false', b'"store":false'),
        (b'"input":"Hi","previous_response_id":"r-1"', b'"input":"Hi","previous_response_id":"r-1"'),
    ],
)
def test_prompt__with_turns__stand_before_the_input(given: bytes, expected: bytes) -> None:
    changed = SURFACE.with_prompt(b'{"model":"m",%b}' % given, [*BE_KIND, *TURNS])

    rest = b',"input":[' + BEFORE + b"]" if b"store" in given else b""
    assert changed == b'{"model":"m",%b,"instructions":"Be kind.\\n\\nAnswer in German."%b}' % (expected, rest)


def test_prompt__only_turns__adds_no_instructions() -> None:
    changed = SURFACE.with_prompt(b'{"input":"Hi"}', TURNS[1:2])

    assert json.loads(changed) == {"input": [TURNS[1], {"role": "user", "content": "Hi"}]}
