"""Tests that the request which a surface hands on as values is the one that its bytes say, whatever a client sends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.pipeline.native import native_body
from gateway.protocol.wire import LazyFields, convert_request, decode_request
from gateway.surfaces.base import Surface, SurfaceRequest
from gateway.surfaces.messages import plain as messages_plain
from gateway.surfaces.messages import request as messages_request
from gateway.surfaces.messages.surface import COUNT_TOKENS
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.responses import plain as responses_plain
from gateway.surfaces.responses import request as responses_request
from gateway.surfaces.responses.surface import SURFACE as RESPONSES

ODD = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-3, 3) | st.text(max_size=3)
TEXT = st.text(max_size=20)
NAMED = st.fixed_dictionaries({"name": TEXT})
TOOL = st.fixed_dictionaries({"name": TEXT, "input_schema": NAMED}) | st.fixed_dictionaries(
    {"type": st.just("function"), "name": TEXT, "parameters": NAMED}
)
MORE: dict[str, st.SearchStrategy[Any]] = {
    "temperature": st.floats(-1, 3) | ODD,
    "top_p": st.floats(-1, 2) | ODD,
    "max_tokens": st.integers(-1, 1_000_001) | ODD,
    "max_output_tokens": st.integers(-1, 1_000_001) | ODD,
    "stream": st.booleans() | ODD,
    "stop_sequences": st.lists(TEXT, max_size=2),
    "system": TEXT,
    "instructions": TEXT,
    "user": TEXT | ODD,
    "models": st.lists(TEXT, max_size=7) | ODD,
    "provider": st.fixed_dictionaries({}, optional={"only": st.lists(TEXT, max_size=2), "sort": TEXT}) | ODD,
    "prompt_config": TEXT | ODD,
    "prompt_variables": st.dictionaries(TEXT, ODD | st.lists(ODD, max_size=2), max_size=2),
    "thinking": st.fixed_dictionaries({"type": TEXT}, optional={"budget_tokens": ODD}) | ODD,
    "reasoning": st.fixed_dictionaries({"effort": TEXT | ODD}),
    "tools": st.lists(
        st.fixed_dictionaries({"type": st.just("function"), "name": TEXT, "parameters": NAMED}), max_size=2
    )
    | st.lists(st.fixed_dictionaries({"name": TEXT, "input_schema": NAMED}), max_size=2),
    "tool_choice": st.sampled_from(["auto", "none", {"type": "auto"}, {"type": "function", "name": "x"}]),
    "text": st.fixed_dictionaries({"format": st.fixed_dictionaries({"type": TEXT})}),
    "anything": ODD,
}
PARTS = st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "input_text"]), "text": TEXT}), max_size=3)
CALL = st.fixed_dictionaries({"type": st.just("tool_use"), "id": TEXT, "name": TEXT, "input": NAMED})
TURN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system"]), "content": TEXT | PARTS | st.lists(CALL, max_size=2)},
    optional={"name": TEXT},
)
BODIES = st.fixed_dictionaries(
    {"model": TEXT | ODD, "messages": st.lists(TURN, max_size=4)}, optional={"max_tokens": st.just(9), **MORE}
)
SURFACES = [MESSAGES, COUNT_TOKENS, RESPONSES]


def outcome(read: Any, *given_values: Any) -> Any:
    """Returns what `read` makes of the values, or the code and message of its refusal."""
    try:
        return read(*given_values)
    except ValidationError as error:
        return error.code, error.message


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.operation)
@given(body=BODIES)
def test_converted__any_request__as_its_bytes_say(surface: Surface, body: dict[str, Any]) -> None:
    if surface is RESPONSES:
        body["input"] = body.pop("messages")
    sent = msgspec.json.encode(body)
    read = outcome(surface.read, sent)
    if not isinstance(read, SurfaceRequest):
        return
    if read.is_plain:
        assert native_body(surface.forwarded(sent)) is sent
    assert read.fields is not None
    assert dict(LazyFields(b"not read", read.fields)) == msgspec.json.decode(read.body)
    assert outcome(convert_request, read.fields, read.body) == outcome(decode_request, read.body)


TURNS = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": TEXT}),
    max_size=3,
)
NUMBER = st.sampled_from([0, 1, 0.5, 2, -1, 1.0, True, 2**70])
NEARLY_PLAIN = st.fixed_dictionaries(
    {"model": TEXT},
    optional={
        "max_tokens": NUMBER,
        "max_output_tokens": NUMBER,
        "messages": TURNS,
        "input": TURNS | TEXT,
        "system": TEXT | st.none(),
        "instructions": TEXT | st.none(),
        "stream": st.sampled_from([True, False, None, 1]),
        "store": st.booleans(),
        "temperature": NUMBER,
        "top_p": NUMBER,
        "top_k": NUMBER,
        "user": TEXT,
        "stop_sequences": st.lists(TEXT, max_size=1),
    },
)


@pytest.mark.parametrize(
    ("plain", "request_module"),
    [(messages_plain, messages_request), (responses_plain, responses_request)],
    ids=["messages", "responses"],
)
@given(body=NEARLY_PLAIN)
def test_plain__any_request__as_translated(plain: Any, request_module: Any, body: dict[str, Any]) -> None:
    if plain is messages_plain:
        body.pop("max_output_tokens", None)
        body.pop("input", None)
    else:
        body.pop("max_tokens", None)
        body.pop("messages", None)
    made = plain.plain_chat(body)
    if made is not None:
        expected = msgspec.json.decode(request_module.translated(body).body)
        assert (list(made), msgspec.json.decode(msgspec.json.encode(made))) == (list(expected), expected)


def test_plain__texts_and_usual_parameters__plain() -> None:
    turns = [{"role": "user", "content": "Hi"}]
    message = {"model": "m", "max_tokens": 9, "temperature": 1, "system": "Be kind.", "messages": turns}
    assert messages_plain.plain_chat(message) is not None
    response = {"model": "m", "max_output_tokens": 9, "temperature": 1, "instructions": "Be kind.", "store": False}
    assert responses_plain.plain_chat({**response, "input": turns}) is not None
    assert responses_plain.plain_chat({**response, "input": "Hi"}) is not None
