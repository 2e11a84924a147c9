"""Tests that a request of plain form is decoded as any request is, and that no other request has that form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.protocol.plain import NEVER_IN_PLAIN, PlainRequest, plain_request
from gateway.protocol.wire import ChatCompletionRequest, decode_request
from tests.gateway.plans.forms import PLAIN_BODIES
from tests.gateway.test_plain_requests import BODIES

MESSAGES = [{"role": "user", "content": "a"}]
PLAIN = {"model": "m", "messages": MESSAGES}
SPOILT: dict[str, bytes] = {
    "unknown_field": json.dumps({**PLAIN, "anything": 1}).encode(),
    "unknown_field_of_a_message": json.dumps({**PLAIN, "messages": [{**MESSAGES[0], "cache_control": {}}]}).encode(),
    "unknown_field_with_escapes": b'{"model":"m","messages":[{"role":"user","content":"a","cache\\u005fcontrol":{}}]}',
    "unknown_field_behind_a_long_text": json.dumps(
        {"messages": [{"role": "user", "content": "a" * 20_000}], "model": "m", "metadata": {"a": "b"}}
    ).encode(),
    "null": json.dumps({**PLAIN, "temperature": None}).encode(),
    "null_model_list": json.dumps({**PLAIN, "models": None}).encode(),
    "null_name": json.dumps({**PLAIN, "messages": [{**MESSAGES[0], "name": None}]}).encode(),
    "null_content": json.dumps({**PLAIN, "messages": [{"role": "assistant", "content": None}]}).encode(),
    "no_content": json.dumps({**PLAIN, "messages": [{"role": "assistant"}]}).encode(),
    "name": json.dumps({**PLAIN, "messages": [{**MESSAGES[0], "name": "b"}]}).encode(),
    "no_messages": json.dumps({**PLAIN, "messages": []}).encode(),
    "too_many_messages": json.dumps({**PLAIN, "messages": MESSAGES * 1001}).encode(),
    "developer": json.dumps({**PLAIN, "messages": [{"role": "developer", "content": "a"}]}).encode(),
    "parts": json.dumps({**PLAIN, "messages": [{"role": "user", "content": [{"text": "a"}]}]}).encode(),
    "tools": json.dumps({**PLAIN, "tools": []}).encode(),
    "tool_choice": json.dumps({**PLAIN, "tool_choice": "auto"}).encode(),
    "models": json.dumps({**PLAIN, "models": []}).encode(),
    "provider": json.dumps({**PLAIN, "provider": {}}).encode(),
    "null_prompt_config": json.dumps({**PLAIN, "prompt_config": None}).encode(),
    "prompt_variables": json.dumps({**PLAIN, "prompt_variables": {}}).encode(),
    "out_of_bounds": json.dumps({**PLAIN, "temperature": 2.5}).encode(),
    "long_name": json.dumps({**PLAIN, "model": "m" * 513}).encode(),
    "no_json": b"{",
    "more_behind_the_object": json.dumps(PLAIN).encode() + b"1",
    "not_utf8": b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}',
    "not_utf8_in_a_name": b'{"model":"m","messages":[{"role":"user","content":"a"}],"\xff":1}',
    "control_character": b'{"model":"m","messages":[{"role":"user","content":"a\nb"}]}',
    "nested_deeply": b'{"model":"m","messages":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "large": json.dumps({**PLAIN, "messages": [{"role": "user", "content": "a" * 1_100_000}]}).encode(),
}


@given(body=PLAIN_BODIES)
def test_request_of_plain_form__is_what_any_decoder_makes_of_it(body: dict[str, Any]) -> None:
    written = json.dumps(body, ensure_ascii=True).encode()
    try:
        expected: ChatCompletionRequest | None = decode_request(written)
    except ValidationError:
        expected = None

    read = plain_request(written)

    assert (read is None) == (expected is None)
    if read is not None and expected is not None:
        assert isinstance(read, PlainRequest)
        assert values(read) == values(expected)


@given(body=PLAIN_BODIES | BODIES, spaces=st.booleans())
def test_plain_form__means_that_no_mark_stands_outside_texts(body: dict[str, Any], spaces: bool) -> None:
    written = json.dumps(body, separators=None if spaces else (",", ":")).encode()

    if plain_request(written) is not None:
        without_texts = {name: value for name, value in body.items() if name not in ("messages", "user", "stop")}
        assert not any(mark in json.dumps(without_texts).encode() for mark in NEVER_IN_PLAIN)
        assert all(message.keys() == {"role", "content"} for message in body["messages"])
        assert all(message["content"].__class__ is str for message in body["messages"])


@pytest.mark.parametrize("end", ["", '"x": 1', '{"metadata": {}}', "\\", '\\"a\\": null', "ü" * 600], ids=ascii)
@pytest.mark.parametrize("escapes", [True, False])
def test_long_request_of_plain_form__is_known_whatever_its_text_ends_with(end: str, escapes: bool) -> None:
    messages = [{"role": "user", "content": "a" * 20_000 + end}]
    written = json.dumps({**PLAIN, "messages": messages, "user": "u"}, ensure_ascii=escapes).encode()

    read = plain_request(written)

    assert read is not None
    assert read.messages[0].content == messages[0]["content"]


@pytest.mark.parametrize("written", SPOILT.values(), ids=SPOILT)
def test_request_of_another_form__is_none(written: bytes) -> None:
    assert plain_request(written) is None


def values(request: ChatCompletionRequest) -> dict[str, Any]:
    """Returns the fields with plain values, so that objects of two types compare."""
    found = {name: getattr(request, name) for name in ChatCompletionRequest.__struct_fields__}
    found["messages"] = [(message.role, message.content, message.name) for message in request.messages]
    return found
