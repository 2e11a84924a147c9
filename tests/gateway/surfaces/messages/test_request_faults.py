"""Tests that every fault of a request names the client's own field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.surfaces.messages.surface import SURFACE
from tests.gateway.surfaces.messages.clients import ask


def fault_of(body: bytes) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        SURFACE.read(body)
    return caught.value


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
