"""Tests that every fault of a request names the client's own field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.surfaces.messages.foreign import SEAL
from gateway.surfaces.messages.surface import SURFACE
from tests.gateway.surfaces.messages.clients import ASK, ask

CALL = {"type": "tool_use", "id": "toolu_1", "name": "ping", "input": {}}
TOOL = {"name": "ping", "input_schema": {"type": "object"}}
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model: this field is required"),
    ({"model": 7}, "model: expected a string"),
    ({"max_tokens": None}, "max_tokens: this field is required"),
    ({"max_tokens": "9"}, "max_tokens: expected an integer"),
    ({"max_tokens": -1}, "max_tokens: expected an integer from 0 to 1000000"),
    ({"messages": None}, "messages: this field is required"),
    ({"messages": {}}, "messages: expected a list"),
    ({"messages": []}, "messages: at least one message is required"),
    ({"messages": ["x"]}, "messages[0]: expected an object"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role: expected user, assistant or system"),
    ({"messages": [{"role": "user"}]}, "messages[0].content: this field is required"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content: expected a string or a list"),
    ({"temperature": 1.5}, "temperature: expected a number from 0 to 1"),
    ({"top_p": True}, "top_p: expected a number from 0 to 1"),
    ({"top_k": 1.5}, "top_k: expected an integer"),
    ({"stop_sequences": ["a", 1]}, "stop_sequences[1]: expected a string"),
    ({"stop_sequences": "a"}, "stop_sequences: expected a list"),
    ({"stream": "yes"}, "stream: expected true or false"),
    ({"metadata": {"user_id": 7}}, "metadata.user_id: expected a string"),
    ({"thinking": {}}, "thinking.type: this field is required"),
    ({"thinking": {"type": "enabled", "budget_tokens": "x"}}, "thinking.budget_tokens: expected an integer"),
    ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema: this field is required"),
    ({"output_config": {"effort": 3}}, "output_config.effort: expected a string"),
    ({"output_format": "json"}, "output_format: expected an object"),
    ({"service_tier": 1}, "service_tier: expected a string"),
    ({"system": 7}, "system: expected a string or a list of text blocks"),
    ({"system": [{"type": "image"}]}, "system[0].type: expected text"),
    ({"system": [{"type": "text"}]}, "system[0].text: this field is required"),
    ({"tools": [7]}, "tools[0]: expected an object"),
    ({"tools": [{"input_schema": {}}]}, "tools[0].name: this field is required"),
    ({"tools": [TOOL, {"name": "x"}]}, "tools[1].input_schema: this field is required"),
    ({"tools": [{**TOOL, "strict": 1}]}, "tools[0].strict: expected true or false"),
    ({"tools": [TOOL], "tool_choice": "auto"}, "tool_choice: expected an object"),
    ({"tools": [TOOL], "tool_choice": {"type": "some"}}, "tool_choice.type: expected auto, any, tool or none"),
    ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, "tool_choice.name: this field is required"),
]
USERS_BLOCKS: list[tuple[Any, str]] = [
    (7, ": expected an object"),
    ({}, ".type: this field is required"),
    ({"type": "text"}, ".text: this field is required"),
    ({"type": "text", "text": "x", "cache_control": "y"}, ".cache_control: expected an object"),
    ({"type": "image"}, ".source: this field is required"),
    ({"type": "image", "source": {"type": "base64", "data": "x"}}, ".source.media_type: this field is required"),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png"}}, ".source.data: this field is"),
    ({"type": "document", "source": {"type": "url"}}, ".source.url: this field is required"),
    ({"type": "document", "source": {"type": "text"}}, ".source.data: this field is required"),
    ({"type": "tool_result"}, ".tool_use_id: this field is required"),
    ({"type": "tool_result", "tool_use_id": "t", "content": 7}, ".content: expected a string or a list"),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]},
        ".content[0].source: this field is required",
    ),
    ({"type": "tool_result", "tool_use_id": "t", "is_error": "no"}, ".is_error: expected true or false"),
    (CALL, ": a block of type tool_use belongs to a message of the assistant"),
]
ASSISTANTS_BLOCKS: list[tuple[Any, str]] = [
    ({"type": "text", "text": 1}, ".text: expected a string"),
    ({**CALL, "id": None}, ".id: this field is required"),
    ({**CALL, "input": "x"}, ".input: expected an object"),
    ({"type": "thinking", "signature": "x"}, ".thinking: this field is required"),
    ({"type": "redacted_thinking"}, ".data: this field is required"),
    ({"type": "thinking", "thinking": "x", "signature": f"{SEAL}!"}, ".signature: this is not the value that"),
    ({"type": "redacted_thinking", "data": f"{SEAL}W10="}, ".data: this is not the value that"),
    ({"type": "tool_result", "tool_use_id": "t"}, ": a tool_result belongs to a message of the user"),
]


def fault_of(body: bytes) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        SURFACE.read(body)
    return caught.value


@pytest.mark.parametrize(("fields", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_fault__field__named(fields: dict[str, Any], message: str) -> None:
    fault = fault_of(ask(**fields))
    assert fault.message.startswith(message)
    assert (fault.status, fault.code == "missing_field") == (400, "required" in message and "at least" not in message)


@pytest.mark.parametrize(("block", "message"), USERS_BLOCKS, ids=[message for _, message in USERS_BLOCKS])
def test_fault__block_of_the_user__named(block: Any, message: str) -> None:
    messages = [*ASK["messages"], {"role": "user", "content": [{"type": "text", "text": "x"}, block]}]
    assert fault_of(ask(messages=messages)).message.startswith(f"messages[1].content[1]{message}")


@pytest.mark.parametrize(("block", "message"), ASSISTANTS_BLOCKS, ids=[message for _, message in ASSISTANTS_BLOCKS])
def test_fault__block_of_the_assistant__named(block: Any, message: str) -> None:
    messages = [*ASK["messages"], {"role": "assistant", "content": [block]}]
    assert fault_of(ask(messages=messages)).message.startswith(f"messages[1].content[0]{message}")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"model": "\xff"}', b"null"])
def test_fault__no_object__invalid_json(body: bytes) -> None:
    assert fault_of(body).code == "invalid_json"


def test_fault__nested_too_deeply__named() -> None:
    deep = b'{"model":"m","max_tokens":1,"messages":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    assert "nested too deeply" in fault_of(deep).message


def test_fault__too_many_messages__their_number() -> None:
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "x"} for n in range(1001)]
    fault = fault_of(ask(messages=[{"role": "user", "content": results}]))
    assert (fault.code, fault.message[:25]) == ("too_many_messages", "messages: 1001 messages, ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
BLOCK = st.dictionaries(
    st.sampled_from(["type", "text", "source", "id", "name", "input", "thinking", "data", "content", "signature"]),
    JSON | st.sampled_from(["text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "document"]),
    max_size=6,
)
FIELDS = st.dictionaries(
    st.sampled_from(["system", "tools", "tool_choice", "thinking", "output_config", "metadata", "stop_sequences"]),
    JSON | st.lists(BLOCK, max_size=2),
    max_size=4,
)


@given(FIELDS, st.lists(BLOCK, max_size=3), st.sampled_from(["user", "assistant", "system"]))
def test_read__any_json__a_request_or_a_fault_that_names_a_field(
    fields: dict[str, Any], blocks: list[dict[str, Any]], role: str
) -> None:
    body = ask(**fields, messages=[{"role": role, "content": blocks}])
    try:
        SURFACE.read(body)
    except ValidationError as fault:
        assert fault.message.partition(":")[0].partition("[")[0].partition(".")[0] in {*fields, "messages"}
