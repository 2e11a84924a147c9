"""Tests requests to Cohere. Every body has to fit the types of the vendor's SDK."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.base import ChatRequest, Media
from integrations.providers.cohere import ADAPTER
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.cohere_sdk import assert_accepted
from tests.integrations.exchanges import chat_request, credentials

COMMAND_A = "command-a-03-2025"
REASONING = "command-a-reasoning-08-2025"
USER: dict[str, Any] = {"role": "user", "content": "Hallo"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
PING = {"type": "function", "function": {"name": "ping", "description": "Pings", "parameters": SCHEMA}}
PONG = {"type": "function", "function": {"name": "pong", "description": "Pongs", "parameters": SCHEMA}}


def build(request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    made = ADAPTER.build_request(request, credentials("cohere"))
    body: dict[str, Any] = json.loads(made.body)
    assert_accepted(body)
    return body, made.warnings


def built(model: str = COMMAND_A, **fields: Any) -> dict[str, Any]:
    return build(chat_request(model, **fields))[0]


def messages_of(*messages: dict[str, Any], model: str = COMMAND_A) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = built(model, messages=list(messages))["messages"]
    return made


def called(**more: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": '{"a":"b"}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("", "https://api.cohere.com/v2/chat"),
        ("https://api.cohere.com", "https://api.cohere.com/v2/chat"),
        ("https://proxy.test/cohere/v2/", "https://proxy.test/cohere/v2/chat"),
    ],
)
def test_address__with_or_without_the_version__one_place(base_url: str, url: str) -> None:
    made = ADAPTER.build_request(chat_request(COMMAND_A), credentials("cohere", base_url, key="k3y"))
    assert (made.method, made.url) == ("POST", url)
    assert made.headers["authorization"] == "Bearer k3y"


def test_endpoint__same_credentials__made_once() -> None:
    access = credentials("cohere")
    first, second = (ADAPTER.build_request(chat_request(COMMAND_A), access) for _ in range(2))
    assert first.headers is second.headers


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"temperature": 0.3, "seed": 7, "logprobs": True}, {"temperature": 0.3, "seed": 7, "logprobs": True}),
        ({"top_p": 0.8, "top_k": 40}, {"p": 0.8, "k": 40}),
        ({"p": 0.8, "k": 40}, {"p": 0.8, "k": 40}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 6, "max_tokens": 5}, {"max_tokens": 6}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["A", "B"]}, {"stop_sequences": ["A", "B"]}),
        ({"stop_sequences": ["C"]}, {"stop_sequences": ["C"]}),
        ({"frequency_penalty": 0.5, "presence_penalty": 1}, {"frequency_penalty": 0.5, "presence_penalty": 1}),
        ({"safety_mode": "STRICT", "priority": 1}, {"safety_mode": "STRICT", "priority": 1}),
        ({"citation_options": {"mode": "OFF"}}, {"citation_options": {"mode": "OFF"}}),
        ({"documents": ["a", {"data": {"text": "b"}}]}, {"documents": ["a", {"data": {"text": "b"}}]}),
        ({"n": 1, "modalities": ["text"], "stream": True, "stream_options": {}}, {"stream": True}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        (
            {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
            {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "r", "schema": SCHEMA, "strict": True},
                }
            },
            {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
        ),
    ],
    ids=str,
)
def test_field__openais_or_coheres_name__coheres(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    body, warnings = build(chat_request(COMMAND_A, **fields))
    assert {"stream": False, **expected} == {name: body[name] for name in body if name not in ("model", "messages")}
    assert not warnings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user", "u"),
        ("store", True),
        ("metadata", {"a": "b"}),
        ("logit_bias", {"1": 2}),
        ("top_logprobs", 3),
        ("service_tier", "flex"),
        ("prediction", {"type": "content", "content": "x"}),
        ("parallel_tool_calls", False),
        ("field_of_tomorrow", 1),
    ],
)
def test_field__unknown_to_cohere__dropped_and_named(name: str, value: Any) -> None:
    body, warnings = build(chat_request(COMMAND_A, **{name: value}))
    assert name not in body
    assert [warning.split(":")[0] for warning in warnings] == [name]


@pytest.mark.parametrize(("value", "nearest"), [(-1.5, 0), (2, 1)])
def test_penalty__beyond_coheres_range__nearest_and_named(value: float, nearest: float) -> None:
    body, warnings = build(chat_request(COMMAND_A, frequency_penalty=value))
    assert body["frequency_penalty"] == nearest
    assert warnings[0].startswith("frequency_penalty:")


def parts(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"n": 2}, "n"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "modalities"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [PING], "tool_choice": {"type": "function", "function": {"name": "pong"}}}, "tool_choice"),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages"),
        (parts({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}), "messages"),
        (parts({"type": "video_url", "video_url": {"url": "x"}}), "messages"),
        (parts({"type": "file", "file": {"file_id": "f1"}}), "messages"),
        (parts({"type": "document_url", "document_url": {"url": "ftp://x/a.txt"}}), "messages"),
        (parts({"type": "document_url", "document_url": {"url": data_url("application/pdf", b"%PDF")}}), "messages"),
        ({"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"id": "1", "custom": {}}]}]}, "messages"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "r"}}}, "response_format"),
    ],
    ids=str,
)
def test_field__another_kind_of_answer__refused(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        built(**fields)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("choice", "expected", "names"),
    [
        (None, None, ["ping", "pong"]),
        ("auto", None, ["ping", "pong"]),
        ("none", "NONE", ["ping", "pong"]),
        ("required", "REQUIRED", ["ping", "pong"]),
        ({"type": "function", "function": {"name": "pong"}}, "REQUIRED", ["pong"]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [PONG]}}, "REQUIRED", ["pong"]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [PING]}}, None, ["ping"]),
    ],
    ids=str,
)
def test_tool_choice__every_form__coheres(choice: Any, expected: str | None, names: list[str]) -> None:
    body, warnings = build(chat_request(COMMAND_A, tools=[PING, PONG], tool_choice=choice))
    assert body.get("tool_choice") == expected
    assert [tool["function"]["name"] for tool in body["tools"]] == names
    assert not warnings


def test_web_search__no_connectors__refused() -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build(chat_request(COMMAND_A, web_search_options={}))
    assert caught.value.parameter == "web_search_options"


def test_tool_choice__without_tools__left_out() -> None:
    assert "tool_choice" not in built(tool_choice="none", tools=[])


def strict(tool: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {**tool["function"], "strict": True, **more}}


@pytest.mark.parametrize(
    ("tools", "fields", "expected", "named"),
    [
        ([PING], {}, None, False),
        ([strict(PING), strict(PONG)], {}, True, False),
        ([strict(PING), PONG], {}, None, True),
        ([strict(PING, parameters={"type": "object"})], {}, None, True),
        ([PING], {"strict_tools": True}, True, False),
        ([strict(PING)], {"strict_tools": False}, False, False),
    ],
)
def test_strict__of_the_tools__all_or_none(
    tools: list[Any], fields: dict[str, Any], expected: bool | None, named: bool
) -> None:
    body, warnings = build(chat_request(COMMAND_A, tools=tools, **fields))
    assert body.get("strict_tools") is expected
    assert bool(warnings) is named
    assert all("strict" not in tool["function"] for tool in body["tools"])


@pytest.mark.parametrize(
    ("model", "fields", "expected", "named"),
    [
        (REASONING, {}, None, ()),
        (REASONING, {"thinking": {"type": "enabled"}}, {"type": "enabled"}, ()),
        (REASONING, {"thinking": {"type": "adaptive"}}, {"type": "enabled"}, ()),
        (REASONING, {"thinking": {"type": "disabled"}}, {"type": "disabled"}, ()),
        (
            REASONING,
            {"thinking": {"type": "enabled", "budget_tokens": 500}},
            {"type": "enabled", "token_budget": 500},
            (),
        ),
        (REASONING, {"thinking": {"type": "enabled", "token_budget": 7}}, {"type": "enabled", "token_budget": 7}, ()),
        (REASONING, {"reasoning_effort": "none"}, {"type": "disabled"}, ()),
        (REASONING, {"reasoning_effort": "low"}, {"type": "enabled", "token_budget": 4096}, ()),
        ("command-a-plus-05-2026", {"reasoning_effort": "high"}, {"type": "enabled", "token_budget": 16384}, ()),
        (REASONING, {"reasoning_effort": "max"}, {"type": "enabled"}, ()),
        (REASONING, {"reasoning_effort": "low", "max_tokens": 5120}, {"type": "enabled", "token_budget": 4096}, ()),
        (
            REASONING,
            {"reasoning_effort": "high", "max_tokens": 3000},
            {"type": "enabled", "token_budget": 2400},
            ("thinking",),
        ),
        (
            REASONING,
            {"reasoning_effort": "max", "max_tokens": 3000},
            {"type": "enabled", "token_budget": 2400},
            ("thinking",),
        ),
        (
            REASONING,
            {"thinking": {"type": "enabled", "budget_tokens": 2999}, "max_tokens": 3000},
            {"type": "enabled", "token_budget": 2999},
            (),
        ),
        (REASONING, {"thinking": {"type": "enabled"}, "max_tokens": 3000}, {"type": "enabled"}, ()),
        (REASONING, {"thinking": {"type": "between_tools"}}, {"type": "disabled"}, ()),
        (
            REASONING,
            {"thinking": {"type": "adaptive", "display": "omitted"}},
            {"type": "enabled"},
            ("thinking.display",),
        ),
        (COMMAND_A, {"thinking": {"type": "enabled"}}, None, ("thinking",)),
        (COMMAND_A, {"thinking": {"type": "disabled"}}, None, ()),
        ("command-r-08-2024", {"reasoning_effort": "low"}, None, ("reasoning_effort",)),
    ],
    ids=str,
)
def test_thinking__by_model__coheres_or_named(
    model: str, fields: dict[str, Any], expected: dict[str, Any] | None, named: tuple[str, ...]
) -> None:
    body, warnings = build(chat_request(model, **fields))
    assert body.get("thinking") == expected
    assert tuple(warning.split(":")[0] for warning in warnings) == named


def test_messages__every_role__in_its_place_and_form() -> None:
    messages = [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "text", "text": "d", "cache_control": {"type": "ephemeral"}}]},
        USER,
        called(annotations=[], refusal=None),
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
    ]
    body, warnings = build(chat_request(COMMAND_A, messages=messages))
    assert body["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "system", "content": [{"type": "text", "text": "d"}]},
        USER,
        {"role": "assistant", "tool_calls": called()["tool_calls"]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
    ]
    assert not warnings


def test_messages__names_and_error_marks__dropped_and_named_once() -> None:
    messages = [
        {**USER, "name": "a"},
        {**USER, "name": "b"},
        {"role": "tool", "tool_call_id": "c1", "content": "r", "is_error": True},
    ]
    _, warnings = build(chat_request(COMMAND_A, messages=messages))
    assert [warning.split(":")[0] for warning in warnings] == ["messages.name", "messages.is_error"]


def test_call__arguments_as_an_object_or_missing__text() -> None:
    calls = [
        {"id": "c1", "function": {"name": "ping", "arguments": {"a": 1}}},
        {"id": "c2", "function": {"name": "ping"}},
    ]
    (message,) = messages_of({"role": "assistant", "tool_calls": calls})
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"a":1}', "{}"]


@pytest.mark.parametrize(
    ("model", "message", "expected"),
    [
        (
            REASONING,
            {"content": "a", "reasoning_content": "hm"},
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        ),
        (
            REASONING,
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        ),
        (
            REASONING,
            {"content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        ),
        (
            REASONING,
            {
                "content": "a",
                "reasoning_content": "hm",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "google-gemini-v1"}],
            },
            {"content": "a"},
        ),
        (COMMAND_A, {"content": "a", "reasoning_content": "hm"}, {"content": "a"}),
        (
            COMMAND_A,
            {**called(), "reasoning_content": "I will ping."},
            {"tool_calls": called()["tool_calls"], "tool_plan": "I will ping."},
        ),
        (
            COMMAND_A,
            {**called(), "tool_plan": "I will ping."},
            {"tool_calls": called()["tool_calls"], "tool_plan": "I will ping."},
        ),
        (COMMAND_A, {"content": "a", "citations": ["https://x"]}, {"content": "a"}),
        (
            COMMAND_A,
            {"content": "a", "citations": [{"start": 0, "end": 1, "text": "a", "index": 0}]},
            {"content": "a", "citations": [{"start": 0, "end": 1, "text": "a"}]},
        ),
        (
            COMMAND_A,
            {"content": "a", "provider_specific_fields": {"citations": [{"start": 0, "end": 1, "index": 0}]}},
            {"content": "a", "citations": [{"start": 0, "end": 1}]},
        ),
        (
            REASONING,
            {
                **called(),
                "reasoning_content": "hm\nI will ping.",
                "provider_specific_fields": {"tool_plan": "I will ping."},
            },
            {
                "tool_calls": called()["tool_calls"],
                "tool_plan": "I will ping.",
                "content": [{"type": "thinking", "thinking": "hm"}],
            },
        ),
        (COMMAND_A, {"content": "a", "provider_specific_fields": "x"}, {"content": "a"}),
        (COMMAND_A, {"content": "a", "provider_specific_fields": {"citations": "x"}}, {"content": "a"}),
        (
            COMMAND_A,
            {"content": "a", "provider_specific_fields": {"citations": [{"url": "https://x"}]}},
            {"content": "a"},
        ),
        (COMMAND_A, {"content": "a", "provider_specific_fields": {"tool_plan": "p"}}, {"content": "a"}),
        (
            COMMAND_A,
            {**called(), "provider_specific_fields": {"tool_plan": {"a": 1}}},
            {"tool_calls": called()["tool_calls"]},
        ),
    ],
    ids=str,
)
def test_assistant__history__coheres_own_goes_back(
    model: str, message: dict[str, Any], expected: dict[str, Any]
) -> None:
    made = messages_of(USER, {"role": "assistant", **message}, USER, model=model)[1]
    assert made == {"role": "assistant", **expected}


@pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": ""}]])
def test_messages__one_that_says_nothing__left_out_but_for_the_last(content: Any) -> None:
    """Cohere refuses empty messages: "all elements in history must have a message"."""
    empty = {"role": "assistant", "content": content}
    assert messages_of(USER, empty, {"role": "user", "content": content or ""}, USER) == [USER, USER]
    assert len(messages_of(USER, empty)) == 2


@pytest.mark.parametrize(("detail", "kept"), [("low", True), ("high", True), ("auto", True), ("original", False)])
def test_images__detail__coheres_or_named(detail: str, kept: bool) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": detail}}
    body, warnings = build(chat_request(COMMAND_A, messages=[{"role": "user", "content": [image, image]}]))
    assert ("detail" in body["messages"][0]["content"][0]["image_url"]) is kept
    assert warnings == (() if kept else ("messages.image_url.detail: dropped, cohere has no counterpart",))


def test_images__in_every_form__an_object() -> None:
    made = messages_of(
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}, "cache_control": {}},
                {"type": "image_url", "image_url": "https://x/b.png"},
                {"type": "file", "file": {"file_data": "data:image/png;base64,AA=="}},
            ],
        }
    )
    assert made[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://x/b.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]


def test_documents__of_text__apart_from_the_messages() -> None:
    content = [
        {"type": "text", "text": "Read"},
        {"type": "document_url", "document_url": {"url": data_url("text/plain", "grün".encode())}, "name": "a.txt"},
        {"type": "file", "file": {"filename": "b.json", "file_data": data_url("application/json", b"{}")}},
        {"type": "document_url", "document_url": "data:text/csv,x%2Cy"},
    ]
    body = built(messages=[{"role": "user", "content": content}], documents=["first"])
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Read"}]}]
    assert body["documents"] == [
        "first",
        {"id": "a.txt", "data": {"title": "a.txt", "text": "grün"}},
        {"id": "b.json", "data": {"title": "b.json", "text": "{}"}},
        {"data": {"text": "x,y"}},
    ]


def test_documents__nothing_beside_them__the_message_says_so() -> None:
    part = {"type": "document_url", "document_url": {"url": data_url("text/plain", b"x")}}
    assert messages_of({"role": "user", "content": [part]})[0]["content"] == [
        {"type": "text", "text": "See the document."}
    ]


def test_user__no_parts__no_text() -> None:
    assert messages_of({"role": "user", "content": []})[0]["content"] == ""


def test_documents__by_address__fetched_and_read_as_what_they_are() -> None:
    url = "https://x/a.txt"
    part = {"type": "document_url", "document_url": {"url": url}}
    image = {"type": "image_url", "image_url": {"url": "https://x/b.png"}}
    request = chat_request(COMMAND_A, messages=[{"role": "user", "content": [part, image, part]}])
    assert ADAPTER.needs(request, credentials("cohere")).media == (url,)
    body, _ = build(replace(request, media={url: Media("text/plain", b"hi")}))
    assert [document["data"]["text"] for document in body["documents"]] == ["hi", "hi"]
    with pytest.raises(UnsupportedParameterError, match="application/pdf"):
        build(replace(request, media={url: Media("application/pdf", b"%PDF")}))


def test_needs__no_document__body_not_even_looked_into() -> None:
    assert ADAPTER.needs(replace(chat_request(COMMAND_A), fields={}), credentials("cohere")).media == ()


def test_tool_result__parts__text_and_documents_stay_images_follow() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}
    native = {"type": "document", "document": {"id": "d", "data": {"text": "t"}}}
    text = {"type": "document_url", "document_url": {"url": data_url("text/plain", b"x")}}
    made = messages_of(
        USER,
        called(),
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}, native, text, picture]},
        {"role": "tool", "tool_call_id": "c2", "content": [picture]},
        {"role": "assistant", "content": "a"},
    )
    assert [message["role"] for message in made] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert made[2]["content"] == [
        {"type": "text", "text": "r"},
        native,
        {"type": "document", "document": {"data": {"text": "x"}}},
    ]
    assert made[3]["content"] == [{"type": "text", "text": "The result is the image that follows."}]
    assert made[4] == {"role": "user", "content": [picture, picture]}


TEXTS = st.text(max_size=20)
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS), min_size=1, max_size=3)
MESSAGES = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["system", "developer", "user"]),
        st.one_of(TEXTS, PARTS),
    ),
    st.builds(
        lambda content, thought: {"role": "assistant", "content": content, "reasoning_content": thought},
        st.one_of(TEXTS, PARTS, st.none()),
        st.one_of(st.none(), TEXTS),
    ),
    st.builds(lambda content: called(content=content), st.one_of(st.none(), TEXTS)),
    st.builds(lambda content: {"role": "tool", "tool_call_id": "c1", "content": content}, st.one_of(TEXTS, PARTS)),
)


def texts_of(messages: list[dict[str, Any]]) -> list[str]:
    found = []
    for message in messages:
        content = message.get("content")
        texts = [part["text"] for part in content if "text" in part] if isinstance(content, list) else [content or ""]
        found += [text] if (text := "".join(texts)) else []
    return found


@given(st.lists(MESSAGES, min_size=1, max_size=6), st.sampled_from([COMMAND_A, REASONING]))
def test_messages__any__accepted_and_every_text_in_order(messages: list[dict[str, Any]], model: str) -> None:
    made = messages_of(*messages, model=model)
    assert texts_of(made) == texts_of(messages)
