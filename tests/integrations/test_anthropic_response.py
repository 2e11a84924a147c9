"""Tests the translation of whole answers of the Messages API to chat completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import ParsedResponse
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.integrations.exchanges import chat_request, credentials

TEXT = {"type": "text", "text": "Hi"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "ping", "input": {"n": 1}}


def answer(*content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 4},
        **changes,
    }


def parsed(body: Any) -> ParsedResponse:
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return ADAPTER.parse_response(chat_request("claude-sonnet-5"), data)


def message_of(*content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(parsed(answer(*content, **changes)).body)["choices"][0]["message"]
    return message


def test_answer__text__a_completion() -> None:
    parsed_answer = parsed(answer(TEXT, {"type": "text", "text": " there 👋"}))
    completion = json.loads(parsed_answer.body)
    assert completion.pop("created") > 1_700_000_000
    assert completion == {
        "id": "msg_1",
        "object": "chat.completion",
        "model": "claude-sonnet-5",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi there 👋"}, "finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
    }
    assert (parsed_answer.model, parsed_answer.finish_reason, parsed_answer.usage) == (
        "claude-sonnet-5",
        "stop",
        Usage(9, 4),
    )


@pytest.mark.parametrize(
    ("stop_reason", "content", "expected"),
    [
        ("end_turn", [TEXT], "stop"),
        ("stop_sequence", [TEXT], "stop"),
        ("pause_turn", [TEXT], "stop"),
        ("a_reason_of_tomorrow", [TEXT], "stop"),
        (None, [TEXT], "stop"),
        ("max_tokens", [TEXT], "length"),
        ("model_context_window_exceeded", [TEXT], "length"),
        ("refusal", [TEXT], "content_filter"),
        ("tool_use", [CALL], "tool_calls"),
        ("end_turn", [CALL], "tool_calls"),
        ("max_tokens", [CALL], "length"),
        ("refusal", [CALL], "content_filter"),
        ("tool_use", [TEXT], "stop"),
    ],
)
def test_finish__stop_reason__in_openais_words(stop_reason: Any, content: list[Any], expected: str) -> None:
    parsed_answer = parsed(answer(*content, stop_reason=stop_reason))
    assert parsed_answer.finish_reason == json.loads(parsed_answer.body)["choices"][0]["finish_reason"] == expected


def test_content__calls_without_text__null() -> None:
    assert message_of(CALL)["content"] is None
    assert message_of(TEXT, CALL)["content"] == "Hi"


@pytest.mark.parametrize("stop_reason", ["end_turn", "max_tokens", "refusal"])
def test_content__of_an_empty_answer__an_empty_text(stop_reason: str) -> None:
    assert message_of(stop_reason=stop_reason) == {"role": "assistant", "content": ""}


def test_refusal__explained__in_its_own_field() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "I will not."}
    message = message_of(stop_reason="refusal", stop_details=details)
    specific = {"stop_details": details}
    assert message == {
        "role": "assistant",
        "content": "",
        "refusal": "I will not.",
        "provider_specific_fields": specific,
    }


def test_container__of_the_vendors_tools__in_the_message() -> None:
    container = {"id": "container_1", "expires_at": "2026-06-30T23:59:37Z"}
    assert message_of(TEXT, container=container)["container"] == container
    assert "container" not in message_of(TEXT, container=None)


def test_calls__arguments__as_they_came() -> None:
    body = json.dumps(answer(CALL)).replace('{"n": 1}', '{"n": 1.50, "s": "\\u00e9"}').encode()
    (call,) = json.loads(parsed(body).body)["choices"][0]["message"]["tool_calls"]
    function = {"name": "ping", "arguments": '{"n": 1.50, "s": "\\u00e9"}'}
    assert call == {"id": "toolu_1", "type": "function", "function": function}


@pytest.mark.parametrize("given", [None, {}])
def test_calls__without_arguments__an_empty_object(given: Any) -> None:
    (call,) = message_of({**CALL, "input": given})["tool_calls"]
    assert call["function"]["arguments"] == "{}"


def test_calls__without_ids__get_distinct_ones() -> None:
    nameless = {"type": "tool_use", "name": "ping", "input": {}}
    assert [call["id"] for call in message_of(nameless, nameless)["tool_calls"]] == ["call_0", "call_1"]


def test_calls__of_the_vendors_own_tools__stay_there() -> None:
    content: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "x", "server_name": "m", "input": {}},
        {"type": "block_of_tomorrow", "text": "not said"},
        TEXT,
    ]
    specific = {"content": content}
    assert message_of(*content) == {"role": "assistant", "content": "Hi", "provider_specific_fields": specific}


def test_end__fields_of_the_vendor__under_its_names() -> None:
    own = {"stop_sequence": "END", "context_management": {"applied_edits": [{"type": "x"}]}, "diagnostics": {"a": 1}}
    message = message_of(TEXT, stop_reason="stop_sequence", **own)
    assert message["provider_specific_fields"] == own
    assert message_of(TEXT, stop_reason="pause_turn")["provider_specific_fields"] == {"stop_reason": "pause_turn"}
    assert "provider_specific_fields" not in message_of(TEXT)


def test_reasoning__signed_and_redacted__text_and_what_comes_back() -> None:
    message = message_of(
        {"type": "thinking", "thinking": "One.", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d2"},
        {"type": "thinking", "thinking": "", "signature": "s3"},
        TEXT,
    )
    assert message["reasoning_content"] == "One."
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "One.", "signature": "s1", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "d2", "format": "anthropic-claude-v1", "index": 1},
        {"type": "reasoning.text", "text": "", "signature": "s3", "format": "anthropic-claude-v1", "index": 2},
    ]


def test_citations__of_pages__annotations_where_they_are_cited() -> None:
    page = {"type": "web_search_result_location", "url": "https://a.test", "title": "A", "cited_text": "…"}
    found = {"type": "search_result_location", "source": "https://b.test", "title": None}
    paper = {"type": "page_location", "document_title": "P", "start_page_number": 1}
    inner = {"type": "search_result_location", "source": "urn:book:7", "title": "B"}
    message = message_of(
        {"type": "text", "text": "Über: "},
        {"type": "text", "text": "it rains", "citations": [page, page, found, paper, inner, "odd"]},
        {"type": "text", "text": ".", "citations": None},
    )
    assert message["content"] == "Über: it rains."
    assert [note["url_citation"] for note in message["annotations"]] == [
        {"url": "https://a.test", "title": "A", "start_index": 6, "end_index": 14},
        {"url": "https://b.test", "title": "", "start_index": 6, "end_index": 14},
    ]
    assert {note["type"] for note in message["annotations"]} == {"url_citation"}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            {"input_tokens": 4, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 9},
            Usage(124, 9, 100, 20),
        ),
        (
            {"input_tokens": 4, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}},
            Usage(4, 9, reasoning_tokens=5),
        ),
        (
            {"input_tokens": 4, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 50}},
            Usage(4, 9, reasoning_tokens=9),
        ),
        ({"input_tokens": -4, "output_tokens": -9, "cache_read_input_tokens": None}, Usage(0, 0)),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 3}, "server_tool_use": None}, Usage(0, 0)),
    ],
)
def test_usage__the_vendors_counts__ours(counts: dict[str, Any], expected: Usage) -> None:
    parsed_answer = parsed(answer(TEXT, usage=counts))
    assert parsed_answer.usage == expected
    reported = json.loads(parsed_answer.body)["usage"]
    assert (reported["prompt_tokens"], reported["completion_tokens"]) == (
        expected.prompt_tokens,
        expected.completion_tokens,
    )
    assert reported["total_tokens"] == expected.total_tokens


def test_usage__missing__left_to_the_caller() -> None:
    parsed_answer = parsed(answer(TEXT, usage=None))
    assert parsed_answer.usage is None
    assert json.loads(parsed_answer.body)["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"<html>", b"{}", b"\xff", b'{"content": "Hi"}', b'{"type": "message", "content": null}'],
)
def test_answer__that_is_none__unusable(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        parsed(body)
    assert (caught.value.kind, caught.value.provider) == (FailureKind.UNUSABLE, "anthropic")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", FailureKind.UNAVAILABLE),
        ("rate_limit_error", FailureKind.RATE_LIMITED),
        ("invalid_request_error", FailureKind.REJECTED),
        ("authentication_error", FailureKind.CREDENTIALS),
        ("permission_error", FailureKind.CREDENTIALS),
        ("billing_error", FailureKind.QUOTA),
        ("not_found_error", FailureKind.NOT_FOUND),
        ("request_too_large", FailureKind.CONTEXT_LENGTH),
        ("timeout_error", FailureKind.UNAVAILABLE),
        ("api_error", FailureKind.UNAVAILABLE),
        ("error_of_tomorrow", FailureKind.UNAVAILABLE),
        (None, FailureKind.UNAVAILABLE),
    ],
)
def test_answer__error_under_200__of_its_type(kind: Any, expected: FailureKind) -> None:
    with pytest.raises(ProviderError, match="no luck") as caught:
        parsed({"type": "error", "error": {"type": kind, "message": "no luck"}})
    assert caught.value.kind is expected


def test_answer__error_with_the_key_in_it__redacted() -> None:
    ADAPTER.build_request(chat_request("claude-sonnet-5"), credentials("anthropic", key="a-key-of-an-odd-form"))
    with pytest.raises(ProviderError) as caught:
        parsed({"type": "error", "error": {"type": "api_error", "message": "bad a-key-of-an-odd-form"}})
    assert "a-key-of-an-odd-form" not in caught.value.message
