"""Tests requests to Mistral. Every body has to fit the types of the vendor's SDK."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.base import ChatRequest
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.mistral import ADAPTER
from integrations.providers.mistral.messages import CallIds, is_call_id
from integrations.providers.mistral.thinking import FORMAT
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.mistral_sdk import assert_accepted

SMALL = "mistral-small-latest"
USER: dict[str, Any] = {"role": "user", "content": "Hallo"}
PING = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}
PONG = {"type": "function", "function": {"name": "pong", "parameters": {"type": "object"}}}


def build(request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    made = ADAPTER.build_request(request, credentials("mistral"))
    body: dict[str, Any] = json.loads(made.body)
    assert_accepted(body)
    return body, made.warnings


def built(model: str = SMALL, **fields: Any) -> dict[str, Any]:
    return build(chat_request(model, **fields))[0]


def messages_of(*messages: dict[str, Any], model: str = SMALL, **fields: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = built(model, messages=list(messages), **fields)["messages"]
    return made


def called(call_id: str, name: str = "ping", **more: Any) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def result(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_body__all_of_it_mistrals__the_same_bytes() -> None:
    request = chat_request(
        SMALL,
        messages=[
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]},
            called("aB3dE6gH9"),
            result("aB3dE6gH9"),
        ],
        tools=[PING],
        safe_prompt=True,
        random_seed=1,
        field_of_tomorrow={"x": 1.50},
    )
    assert ADAPTER.build_request(request, credentials("mistral")).body is request.body


@pytest.mark.parametrize("content", [None, "", []])
def test_messages__answer_that_says_nothing__left_out(content: Any) -> None:
    """Mistral refuses empty answers: "Assistant message must have either content or tool_calls, but not none."."""
    empty = {"role": "assistant", "content": content}
    assert messages_of(USER, empty, USER) == [USER, USER]
    assert messages_of(USER, called("aB3dE6gH9"), result("aB3dE6gH9"), empty, USER)[-2:] == [
        {"role": "assistant", "content": "OK"},
        USER,
    ]


def test_body__another_model_upstream__values_keep_their_bytes() -> None:
    body = b'{"model":"mistral/x","messages":[{"role":"user","content":"\\u00fc"}],"temperature":1.0}'
    made = ADAPTER.build_request(ChatRequest("x", False, body, json.loads(body)), credentials("mistral"))
    assert b'[{"role":"user","content":"\\u00fc"}]' in made.body
    assert b'"temperature":1.0' in made.body
    assert json.loads(made.body)["model"] == "x"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"seed": 7}, {"random_seed": 7}),
        ({"seed": 7, "random_seed": 8}, {"random_seed": 8}),
        ({"max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"max_completion_tokens": 9, "max_tokens": 4}, {"max_tokens": 9}),
        ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
        ({"tool_choice": None, "response_format": None, "tools": None}, {}),
        ({"prompt_mode": None}, {"prompt_mode": None}),
        ({"modalities": ["text"]}, {}),
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"service_tier": "default", "store": False, "logit_bias": {}, "user": ""}, {}),
        ({"temperature": 1.9}, {"temperature": 1.9}),
        (
            {
                "prediction": {
                    "type": "content",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                }
            },
            {"prediction": {"type": "content", "content": "ab"}},
        ),
        ({"metadata": {"a": "b"}, "n": 2, "logprobs": True}, {"metadata": {"a": "b"}, "n": 2, "logprobs": True}),
    ],
    ids=str,
)
def test_field__openais_name_or_form__mistrals(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    body, warnings = build(chat_request(SMALL, **fields))
    assert {name: body[name] for name in body if name not in ("model", "messages")} == expected
    assert not warnings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user", "u"),
        ("store", True),
        ("logit_bias", {"1": 2}),
        ("verbosity", "low"),
        ("service_tier", "flex"),
        ("safety_identifier", "s"),
        ("moderation", {"model": "omni-moderation-latest"}),
        ("prompt_cache_options", {"mode": "explicit"}),
    ],
)
def test_field__unknown_to_mistral__dropped_and_named(name: str, value: Any) -> None:
    body, warnings = build(chat_request(SMALL, **{name: value}))
    assert name not in body
    assert [warning.split(":")[0] for warning in warnings] == [name]


def test_field__of_the_vendors_future__passes_but_not_on_a_fallback() -> None:
    request = chat_request(SMALL, field_of_tomorrow=1)
    body = json.loads(ADAPTER.build_request(request, credentials("mistral")).body)
    assert body["field_of_tomorrow"] == 1
    body, warnings = build(replace(request, crosses_vendor=True))
    assert "field_of_tomorrow" not in body
    assert warnings == ("field_of_tomorrow: dropped, mistral has no counterpart",)


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"modalities": ["text", "audio"], "audio": {"voice": "x"}}, "modalities"),
        ({"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools"),
        ({"tools": [PING], "tool_choice": {"type": "custom", "custom": {"name": "c"}}}, "tool_choice"),
        (
            {
                "tools": [PING],
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [PONG]}},
            },
            "tool_choice",
        ),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "x"}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"filename": "x"}}]}]}, "messages"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"id": "1", "custom": {}}]}]}, "messages"),
    ],
    ids=str,
)
def test_field__another_kind_of_answer__refused(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        built(**fields)
    assert (caught.value.parameter, caught.value.provider) == (parameter, "mistral")


def test_tools__odd_fields__only_what_mistral_knows() -> None:
    tool = {
        "type": "function",
        "function": {"name": "ping", "strict": True, "description": None, "extra": 1},
        "cache_control": {"type": "ephemeral"},
    }
    assert built(tools=[tool])["tools"] == [
        {
            "type": "function",
            "function": {"name": "ping", "strict": True, "parameters": {"type": "object", "properties": {}}},
        }
    ]


def test_tools__the_vendors_own__pass() -> None:
    tool = {"type": "document_library", "library_ids": ["a"]}
    assert built(tools=[tool])["tools"] == [tool]


@pytest.mark.parametrize(
    ("choice", "expected", "tools"),
    [
        ("auto", "auto", [PING, PONG]),
        ("none", "none", [PING, PONG]),
        ("required", "any", [PING, PONG]),
        (
            {"type": "function", "function": {"name": "pong"}},
            {"type": "function", "function": {"name": "pong"}},
            [PING, PONG],
        ),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [PONG]}}, "any", [PONG]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [PONG]}}, "auto", [PONG]),
    ],
    ids=str,
)
def test_tool_choice__every_form__mistrals(choice: Any, expected: Any, tools: list[Any]) -> None:
    body = built(tools=[PING, PONG], tool_choice=choice)
    assert (body["tool_choice"], body["tools"]) == (expected, tools)


@pytest.mark.parametrize(
    ("model", "fields", "expected", "named"),
    [
        (
            SMALL,
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            {"reasoning_effort": "high"},
            ("thinking.budget_tokens",),
        ),
        (SMALL, {"thinking": {"type": "enabled"}}, {"reasoning_effort": "high"}, ()),
        (SMALL, {"thinking": {"type": "between_tools"}}, {"reasoning_effort": "none"}, ()),
        (
            SMALL,
            {"thinking": {"type": "adaptive", "display": "omitted"}},
            {"reasoning_effort": "high"},
            ("thinking.display",),
        ),
        (SMALL, {"reasoning_effort": "max"}, {"reasoning_effort": "max"}, ()),
        (SMALL, {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, ()),
        (SMALL, {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}, {"reasoning_effort": "low"}, ()),
        ("mistral-small-2506", {"thinking": {"type": "enabled"}}, {}, ("thinking",)),
        ("mistral-large-latest", {"thinking": {"type": "disabled"}}, {}, ()),
        ("mistral-large-latest", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}, ()),
        ("magistral-medium-latest", {"thinking": {"type": "adaptive"}}, {"prompt_mode": "reasoning"}, ()),
        ("magistral-medium-latest", {"thinking": {"type": "disabled"}}, {}, ("thinking",)),
    ],
    ids=str,
)
def test_thinking__by_model__its_switch_or_named(
    model: str, fields: dict[str, Any], expected: dict[str, Any], named: tuple[str, ...]
) -> None:
    body, warnings = build(chat_request(model, **fields))
    assert {name: body[name] for name in body if name not in ("model", "messages")} == expected
    assert tuple(warning.split(":")[0] for warning in warnings) == named


def test_reasoning_effort__on_a_fallback_to_a_model_without__dropped_and_named() -> None:
    body, warnings = build(replace(chat_request("mistral-large-latest", reasoning_effort="low"), crosses_vendor=True))
    assert "reasoning_effort" not in body
    assert warnings[0].startswith("reasoning_effort: dropped")


def test_temperature__too_hot_on_a_fallback__lowered_and_named() -> None:
    body, warnings = build(replace(chat_request(SMALL, temperature=1.9), crosses_vendor=True))
    assert body["temperature"] == 1.5
    assert warnings[0].startswith("temperature:")


def test_messages__echoes_and_markers__left_out_in_silence() -> None:
    request = chat_request(
        SMALL,
        messages=[
            {"role": "developer", "content": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]},
            {"role": "user", "content": "q", "cache_control": {"type": "ephemeral"}},
            {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "audio": None, "tool_calls": []},
            USER,
        ],
    )
    body, warnings = build(request)
    assert body["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        USER,
    ]
    assert not warnings


def test_messages__names_and_error_marks__dropped_and_named_once() -> None:
    messages = [{**USER, "name": "a"}, {**USER, "name": "b"}, called("call_1"), {**result("call_1"), "is_error": True}]
    _, warnings = build(chat_request(SMALL, messages=messages))
    assert [warning.split(":")[0] for warning in warnings] == ["messages.name", "messages.is_error"]


def test_parts__every_kind__mistrals() -> None:
    parts = [
        {"type": "refusal", "refusal": "no"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}, "cache_control": {}},
        {"type": "image_url", "image_url": "https://x/a.png"},
        {"type": "document_url", "document_url": {"url": "https://x/a.pdf"}, "name": "a.pdf"},
        {"type": "document_url", "document_url": "https://x/b.pdf", "document_name": "b"},
        {"type": "file", "file": {"filename": "c.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "file", "file": {"file_data": "data:image/png;base64,AA=="}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "file", "file_id": "f2"},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        {"type": "input_audio", "input_audio": "https://x/a.mp3"},
    ]
    assert messages_of({"role": "user", "content": parts})[0]["content"] == [
        {"type": "text", "text": "no"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "image_url", "image_url": "https://x/a.png"},
        {"type": "document_url", "document_url": "https://x/a.pdf", "document_name": "a.pdf"},
        {"type": "document_url", "document_url": "https://x/b.pdf", "document_name": "b"},
        {"type": "document_url", "document_url": "data:application/pdf;base64,AA==", "document_name": "c.pdf"},
        {"type": "image_url", "image_url": "data:image/png;base64,AA=="},
        {"type": "file", "file_id": "f1"},
        {"type": "file", "file_id": "f2"},
        {"type": "input_audio", "input_audio": "AA=="},
        {"type": "input_audio", "input_audio": "https://x/a.mp3"},
    ]


def test_order__user_after_tool__an_answer_comes_between() -> None:
    made = messages_of(USER, called("aB3dE6gH9"), result("aB3dE6gH9"), USER)
    assert [message["role"] for message in made] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("system user", "system user"),
        ("user system user", "user system user"),
        ("user assistant system user", "user assistant user user"),
        ("user assistant developer", "user assistant user"),
        ("system", "user"),
        ("system system", "system user"),
    ],
)
def test_order__instructions_behind_an_answer__the_users(roles: str, expected: str) -> None:
    made = messages_of(*({"role": role, "content": "x"} for role in roles.split()))
    assert " ".join(message["role"] for message in made) == expected
    assert made[0]["content"] == "x"
    marked = "<system-instruction>\nx\n</system-instruction>"
    contents = [marked if role in ("system", "developer") and "assistant" in roles else "x" for role in roles.split()]
    assert [message["content"] for message in made] == contents


def test_order__instructions_behind_a_result__the_users_behind_an_answer() -> None:
    made = messages_of(USER, called("aB3dE6gH9"), result("aB3dE6gH9"), {"role": "system", "content": "s"}, USER)
    assert [message["role"] for message in made] == ["user", "assistant", "tool", "assistant", "user", "user"]


def test_order__an_answer_last__gone_on_with() -> None:
    assert messages_of(USER, {"role": "assistant", "content": "Well"})[1]["prefix"] is True
    assert "prefix" not in messages_of(USER, called("aB3dE6gH9"))[1]


def test_call_ids__foreign__the_same_in_call_and_result_and_next_turn() -> None:
    first = messages_of(USER, called("call_abc"), result("call_abc"))
    made = first[1]["tool_calls"][0]["id"]
    assert is_call_id(made)
    assert first[2]["tool_call_id"] == made
    later = messages_of(USER, called("call_abc"), result("call_abc"), {"role": "assistant", "content": "x"}, USER)
    assert later[1]["tool_calls"][0]["id"] == made


def test_call_ids__none_at_all__still_good_ones() -> None:
    calls = [{"type": "function", "function": {"name": "ping", "arguments": {"a": 1}}} for _ in range(2)]
    (_, message) = messages_of(USER, {"role": "assistant", "tool_calls": calls})
    ids = [call["id"] for call in message["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(map(is_call_id, ids))


@given(st.lists(st.text(max_size=30), max_size=30))
def test_call_ids__any__well_formed_stable_and_distinct(given_ids: list[str]) -> None:
    ids = CallIds(iter(given_ids))
    made = {call_id: ids.of(call_id) for call_id in given_ids}
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", one) for one in made.values())
    assert len(set(made.values())) == len(made)
    assert {call_id: ids.of(call_id) for call_id in given_ids} == made
    assert all(made[call_id] == call_id for call_id in made if is_call_id(call_id))


def test_call_ids__made_one_is_taken__another_is_made() -> None:
    made = CallIds(iter(())).of("call_1")
    assert CallIds(iter((made,))).of("call_1") not in ("call_1", made)


THOUGHT = {"type": "reasoning.text", "text": "hm", "format": FORMAT, "index": 0}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            {"content": "a", "reasoning_content": "hm", "reasoning_details": [THOUGHT]},
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}],
        ),
        (
            {"content": [{"type": "text", "text": "a"}], "reasoning_details": [{**THOUGHT, "signature": "s"}]},
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s"},
                {"type": "text", "text": "a"},
            ],
        ),
        (
            {"content": "a", "reasoning_details": [{**THOUGHT, "text": "h"}, {**THOUGHT, "text": "m"}]},
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}],
        ),
        ({"content": "a", "reasoning_details": [{**THOUGHT, "format": "anthropic-claude-v1"}]}, "a"),
        ({"content": "a", "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}, "a"),
        ({"content": "a", "reasoning_content": "hm"}, "a"),
    ],
    ids=str,
)
def test_thinking__of_earlier_answers__mistrals_own_goes_back(message: dict[str, Any], expected: Any) -> None:
    assert messages_of(USER, {"role": "assistant", **message}, USER)[1] == {"role": "assistant", "content": expected}


@pytest.mark.parametrize(
    ("model", "fields", "kept"),
    [
        ("magistral-medium-latest", {}, True),
        (SMALL, {"reasoning_effort": "high"}, True),
        (SMALL, {"reasoning_effort": "none"}, False),
        ("mistral-large-latest", {}, False),
    ],
)
def test_thinking__of_no_known_origin__only_where_the_model_reasons(
    model: str, fields: dict[str, Any], kept: bool
) -> None:
    history = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    content = messages_of(USER, history, USER, model=model, **fields)[1]["content"]
    assert isinstance(content, list) is kept


def test_thinking__in_mistrals_own_form__the_same_bytes() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
    messages = [USER, {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}, USER]
    request = chat_request(SMALL, messages=messages)
    assert ADAPTER.build_request(request, credentials("mistral")).body is request.body


@pytest.mark.parametrize("options", [{}, {"search_context_size": "low"}], ids=str)
def test_web_search_options__refused(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError, match="web_search_options"):
        built(web_search_options=options)


def test_thinking__of_a_type_of_tomorrow__refused_by_name() -> None:
    with pytest.raises(UnsupportedParameterError, match="thinking: type 'tomorrows'"):
        built(thinking={"type": "tomorrows"})


TEXT: dict[str, Any] = {"type": "text", "text": "It rains"}
REFERENCE: dict[str, Any] = {"type": "reference", "reference_ids": [1, 4]}


def echoed(parts: Any, content: Any = "It rains.") -> Any:
    history = {"role": "assistant", "content": content, "provider_specific_fields": {"content": parts}}
    made = messages_of(USER, history, USER)[1]
    assert made.keys() == {"role", "content"}
    return made["content"]


def test_references__of_an_earlier_answer__back_in_their_places() -> None:
    parts = [TEXT, REFERENCE, {"type": "text", "text": "."}]
    assert echoed(parts) == parts


@pytest.mark.parametrize(
    "parts",
    [
        [TEXT, REFERENCE],
        [{"type": "text", "text": "It rains."}, {"type": "server_tool_use", "id": "x"}],
        [{"type": "text", "text": "It rains.", "citations": []}],
        [REFERENCE, {"type": "reference", "reference_ids": {}}],
        [5],
        [],
        "It rains.",
        {"type": "text"},
        None,
    ],
    ids=str,
)
def test_references__tampered_with_or_of_another_vendor__the_message_alone(parts: Any) -> None:
    assert echoed(parts) == "It rains."
