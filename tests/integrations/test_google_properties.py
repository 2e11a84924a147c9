"""Tests that for any client's request the request for Gemini is valid and holds all of its content."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from integrations.providers.base import ChatRequest
from integrations.providers.google import GEMINI, VERTEX
from integrations.providers.google.schema import google_schema
from tests.fakes.dialects.google import FAKE, VERTEX_FAKE, GoogleFake
from tests.fakes.dialects.story import ReadRequest
from tests.integrations.google_requests import FLASH, body_of, config_of
from tests.night import examples

TEXTS = st.text(alphabet=st.sampled_from(list('ab"\\{}[]\nö👋 ')), min_size=1, max_size=8)
SIGNATURES = st.sampled_from(["c2lnbmVk", "YWxzbyBzaWduZWQ=", ""])
CONTENT = st.one_of(
    TEXTS, st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS), min_size=1, max_size=3)
)
USER = st.builds(lambda content: [{"role": "user", "content": content}], CONTENT)


@st.composite
def assistants(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draws an answer, perhaps with signed parts, perhaps with calls, whose results follow in any order."""
    number = draw(st.integers(0, 3))
    ids = [f"call_{draw(st.integers(0, 10**9))}_{position}" for position in range(number)]
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.one_of(TEXTS, st.none()) if ids else TEXTS)}
    if ids:
        message["tool_calls"] = [_call(call_id, draw(TEXTS), draw(SIGNATURES)) for call_id in ids]
    details = [
        {
            "type": "reasoning.encrypted",
            "data": data,
            "format": draw(st.sampled_from(["google-gemini-v1", "other"])),
            "id": where,
        }
        for data in draw(st.lists(SIGNATURES, max_size=2))
        for where in [draw(st.sampled_from(["", "content:0:1", "content:2:5", "content:9:9", "image:0", *ids]))]
    ]
    if details:
        message["reasoning_details"] = details
    results = [
        {"role": "tool", "tool_call_id": call_id, "content": draw(CONTENT)} for call_id in draw(st.permutations(ids))
    ]
    return [message, *results]


def _call(call_id: str, argument: str, signature: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": json.dumps({"a": argument})}
    extra = {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}
    return {"id": call_id, "type": "function", "function": function, **extra}


CONVERSATIONS = st.builds(
    lambda first, rest: [*first, *(message for group in rest for message in group)],
    USER,
    st.lists(st.one_of(USER, assistants()), max_size=5),
)


def text_of(message: dict[str, Any]) -> str:
    content = message["content"] or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize("fake", [FAKE, VERTEX_FAKE], ids=["google", "google_vertex"])
@settings(max_examples=examples(40, 120), deadline=None)
@given(messages=CONVERSATIONS, model=st.sampled_from(["gemini-2.5-flash", "gemini-3-flash-preview"]))
def test_request__any_conversation__taken_and_whole(
    fake: GoogleFake, messages: list[dict[str, Any]], model: str
) -> None:
    adapter = GEMINI if fake is FAKE else VERTEX
    fields = {"model": model, "messages": messages}
    request = ChatRequest(model, False, b"", fields)
    upstream = adapter.build_request(request, fake.credentials("http://fake.test"))
    received = fake.read(upstream.url.removeprefix("http://fake.test"), upstream.headers, upstream.body)
    TypeAdapter(list[types.Content]).validate_json(json.dumps(json.loads(upstream.body)["contents"]))
    assert_whole(received, messages)


def assert_whole(request: ReadRequest, messages: list[dict[str, Any]]) -> None:
    for role in ("user", "assistant"):
        expected = "".join(text_of(message) for message in messages if message["role"] == role)
        assert "".join(text for who, text in request.turns if who == role) == expected
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert [call.arguments for call in request.calls] == [json.loads(call["function"]["arguments"]) for call in calls]
    assert len(request.results) == len(calls)


NAMES = st.sampled_from(
    ["type", "properties", "const", "$ref", "$schema", "enum", "items", "anyOf", "a", "description"]
)
SCHEMAS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=20,
)


@settings(deadline=None)
@given(schema=SCHEMAS)
def test_schema__anything__the_same_again_when_put_right(schema: Any) -> None:
    before = json.dumps(schema)
    once = google_schema(schema)
    assert json.dumps(schema) == before
    assert google_schema(once) is once


@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
@pytest.mark.parametrize("limit", [400, 1000, 3000, 20000])
@pytest.mark.parametrize("model", [FLASH, "gemini-2.5-pro"])
def test_effort__beside_a_limit__leaves_room_for_the_answer(model: str, effort: str, limit: int) -> None:
    config = config_of(model, reasoning_effort=effort, max_tokens=limit)
    assert config["maxOutputTokens"] == limit
    assert 0 < config["thinkingConfig"]["thinkingBudget"] <= limit * 3 // 4


def test_function__of_endless_depth__passed_on() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    assert body_of(tools=[tool])["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == schema
