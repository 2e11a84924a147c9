"""Automatic prompt-cache markers in the requests to Claude's hosts and to Converse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.base import ChatRequest, Credentials
from integrations.providers.native import native_adapter
from integrations.registry import adapter_for
from tests.night import examples

LONG = "A sentence of some words. " * 400
MARK = {"type": "ephemeral"}
POINT = {"cachePoint": {"type": "default"}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
HELLO = {"role": "user", "content": "Hello"}
ACCESS = {"access_key_id": "AKIA", "secret_access_key": "secret", "region": "us-east-1"}
Json = dict[str, Any]


def chat_body(provider: str, model: str, *, markers: bool = True, **fields: Any) -> Json:
    """Returns the body that the provider gets for a chat completion."""
    content: Json = {"messages": [{"role": "system", "content": LONG}, HELLO], **fields}
    return sent(provider, model, content, markers=markers)


def sent(provider: str, model: str, content: Json, *, markers: bool) -> Json:
    body = json.dumps({"model": model, **content}).encode()
    request = ChatRequest(model, False, body, json.loads(body), cache_markers=markers)
    credentials = Credentials(1, provider, "", "key", ACCESS if provider == "bedrock" else {})
    made: Json = json.loads(adapter_for(provider).build_request(request, credentials).body)
    return made


def native_sent(provider: str, model: str, body: bytes) -> bytes:
    adapter = native_adapter(provider, "messages")
    assert adapter is not None
    credentials = Credentials(1, provider, "", "key", ACCESS if provider == "bedrock" else {})
    return adapter.build_request(ChatRequest(model, False, body, {}, cache_markers=True), credentials).body


def marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + ("cachePoint" in value) + sum(map(marks, value.values()))
    return sum(map(marks, value)) if isinstance(value, list) else 0


def test_claude__chat_completion__tools_system_and_turns_are_marked() -> None:
    turns = [HELLO, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Again"}]
    body = chat_body(
        "anthropic", "claude-sonnet-5", tools=[TOOL], messages=[{"role": "system", "content": LONG}, *turns]
    )

    assert body["tools"][-1]["cache_control"] == MARK
    assert body["system"] == [{"type": "text", "text": LONG, "cache_control": MARK}]
    assert [marks(message) for message in body["messages"]] == [1, 0, 1]


def test_claude__off_short_or_marked_by_the_client__no_markers() -> None:
    own = [{"type": "text", "text": "Hi", "cache_control": MARK}]

    assert marks(chat_body("anthropic", "claude-sonnet-5", markers=False)) == 0
    assert marks(chat_body("anthropic", "claude-sonnet-5", messages=[HELLO])) == 0
    assert marks(chat_body("anthropic", "claude-sonnet-5", messages=[{"role": "user", "content": own}], x=LONG)) == 1


@pytest.mark.parametrize(
    ("model", "marked"),
    [("claude-sonnet-4-5", True), ("claude-3-5-haiku-20241022", True), ("claude-haiku-4-5", False)],
)
def test_claude__minimum_of_the_model__decides(model: str, marked: bool) -> None:
    text = "word " * 1200
    body = chat_body("anthropic", model, messages=[{"role": "user", "content": text}])

    assert (marks(body) > 0) is marked


def test_converse__chat_completion__has_points_behind_tools_system_and_turn() -> None:
    body = chat_body("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", tools=[TOOL])

    assert body["toolConfig"]["tools"][-1] == body["system"][-1] == body["messages"][-1]["content"][-1] == POINT


def test_converse__nova__has_none_behind_tools() -> None:
    body = chat_body("bedrock", "amazon.nova-pro-v1:0", tools=[TOOL])

    assert (marks(body["toolConfig"]), marks(body)) == (0, 2)


def test_converse__model_without_a_cache__no_points() -> None:
    assert marks(chat_body("bedrock", "meta.llama3-3-70b-instruct-v1:0")) == 0


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-sonnet-5"),
        ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ],
)
def test_native__forwarded__values_keep_their_bytes(provider: str, model: str) -> None:
    history = b'{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"look","input":{"x":1.50,"y":1e3}}]}'
    result = b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"\\u00e9"}]}'
    body = b'{"model":"m","max_tokens":10,"system":%b,"messages":[{"role":"user","content":"Hello"},%b,%b]}' % (
        json.dumps(LONG).encode(),
        history,
        result,
    )
    made = native_sent(provider, model, body)

    assert history in made
    assert b'"content":"\\u00e9","cache_control":{"type":"ephemeral"}' in made
    assert marks(json.loads(made)) == 3


@pytest.mark.parametrize(
    "messages", [b"5", b'"x"', b"[5]", b"[]", b'[{"role":"user"}]', b'[{"role":"user","content":5}]']
)
def test_native__body_of_another_shape__is_forwarded_for_the_vendor_to_refuse(messages: bytes) -> None:
    body = b'{"model":"claude-sonnet-5","metadata":%b,"messages":%b}' % (json.dumps(LONG).encode(), messages)

    assert json.loads(native_sent("anthropic", "claude-sonnet-5", body)) == json.loads(body)


texts = st.sampled_from(["", " ", "Hello"])
blocks = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, texts),
        st.just({"type": "thinking", "thinking": "…", "signature": "s"}),
        st.just({"type": "tool_result", "tool_use_id": "t", "content": ""}),
    ),
    max_size=3,
)
messages_of_clients = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.one_of(texts, blocks)}),
    min_size=1,
    max_size=6,
)
tools_of_clients = st.lists(st.sampled_from([{"name": "a"}, {"name": "b", "defer_loading": True}]), max_size=3)


@settings(max_examples=examples(25, 100))
@given(messages=messages_of_clients, tools=tools_of_clients)
def test_native__any_request__at_most_four_markers_none_on_thoughts_and_empty_texts(
    messages: list[Json], tools: list[Json]
) -> None:
    body = json.dumps({"model": "m", "system": LONG, "tools": tools, "messages": messages}).encode()
    made = json.loads(native_sent("anthropic", "claude-sonnet-5", body))
    marked = [
        block
        for message in made["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if "cache_control" in block
    ]

    assert marks(made) <= 4
    assert all(block["type"] != "thinking" and block.get("text", "x").strip() for block in marked)
    assert all("cache_control" not in tool for tool in made["tools"] if tool.get("defer_loading"))
