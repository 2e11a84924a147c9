"""Tests whole answers: a chat completion as a message that Anthropic's SDK reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.surfaces.messages.surface import SURFACE
from tests.gateway.surfaces.messages.clients import REQUEST_ID, answer, ask, completion, read_whole

CLAUDE = "anthropic-claude-v1"

Json = dict[str, Any]


def call(number: int, arguments: str = "{}", name: str = "ping") -> Json:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def use(number: int, value: Json | None = None, name: str = "ping") -> Json:
    return {"type": "tool_use", "id": f"call_{number}", "name": name, "input": value or {}}


def signed(text: str, signature: str, index: int) -> Json:
    return {"type": "reasoning.text", "text": text, "signature": signature, "format": CLAUDE, "index": index}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def thought(words: str, signature: str) -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def test_answer__text__a_message() -> None:
    made = answer({"content": "Grüße 👋"})
    assert made == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "gpt-4o",
        "content": [text("Grüße 👋")],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": 9,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 4,
        },
    }
    read = read_whole(SURFACE.answer(SURFACE.read(ask()), completion({"content": "Grüße 👋"}), REQUEST_ID))
    assert read.to_dict() == made


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("msg_01Abc", "msg_01Abc"),
        ("chatcmpl-A1_b-2", "msg_A1b2"),
        ("gen-17-x", "msg_gen17x"),
        ("", f"msg_{REQUEST_ID.replace('-', '')}"),
        (None, f"msg_{REQUEST_ID.replace('-', '')}"),
    ],
)
def test_id__any__of_the_vendors_form(given: str | None, expected: str) -> None:
    assert answer({"content": "x"}, id=given)["id"] == expected


@pytest.mark.parametrize(
    ("finish", "specific", "expected"),
    [
        ("stop", {}, ("end_turn", None)),
        ("length", {}, ("max_tokens", None)),
        ("tool_calls", {}, ("tool_use", None)),
        ("content_filter", {}, ("refusal", None)),
        ("stop", {"stop_sequence": "END"}, ("stop_sequence", "END")),
        ("stop", {"stop_reason": "pause_turn"}, ("pause_turn", None)),
        ("length", {"stop_reason": "model_context_window_exceeded"}, ("model_context_window_exceeded", None)),
        ("stop", {"stop_reason": "guardrail_intervened"}, ("end_turn", None)),
    ],
)
def test_stop_reason__each_finish_reason__the_vendors(finish: str, specific: Json, expected: Any) -> None:
    made = answer({"content": "x", "provider_specific_fields": specific}, finish)
    assert (made["stop_reason"], made["stop_sequence"]) == expected


def test_calls__beside_text__behind_it_with_decoded_input() -> None:
    made = answer({"content": "See.", "tool_calls": [call(1, '{"city": "Zürich"}'), call(2, "")]}, "tool_calls")
    assert made["content"] == [text("See."), use(1, {"city": "Zürich"}), use(2)]
    assert made["stop_reason"] == "tool_use"


@pytest.mark.parametrize("arguments", ['{"city": "Zü', "[1]", "nothing"])
def test_calls__arguments_are_no_object__not_lost(arguments: str) -> None:
    made = answer({"content": None, "tool_calls": [call(1, arguments)]}, "length")
    assert made["content"] == [use(1, {"INVALID_JSON": arguments})]


def test_thinking__claudes__with_signatures_between_the_calls() -> None:
    details = [
        signed("A", "s0", 0),
        {"type": "reasoning.encrypted", "data": "d1", "format": CLAUDE, "index": 1},
        signed("B", "s2", 3),
        signed("", "s3", 5),
    ]
    message = {
        "content": "See.",
        "tool_calls": [call(1), call(2)],
        "reasoning_content": "AB",
        "reasoning_details": details,
    }
    assert answer(message, "tool_calls")["content"] == [
        thought("A", "s0"),
        {"type": "redacted_thinking", "data": "d1"},
        text("See."),
        thought("B", "s2"),
        use(1),
        thought("", "s3"),
        use(2),
    ]


def test_thinking__unsigned__first() -> None:
    made = answer({"content": "Hi", "reasoning_content": "Hm."})["content"]
    assert [block["type"] for block in made] == ["thinking", "text"]
    assert made[0]["thinking"] == "Hm."
    assert made[0]["signature"]


def test_blocks_of_the_vendor__unchanged_and_in_place() -> None:
    blocks = [
        thought("Hm.", "s0"),
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {**text("It rains."), "citations": [{"type": "char_location", "cited_text": "rain", "document_index": 0}]},
        use(1),
    ]
    message = {
        "content": "It rains.",
        "tool_calls": [call(1)],
        "reasoning_details": [signed("Hm.", "s0", 0)],
        "provider_specific_fields": {"content": blocks},
    }
    assert answer(message, "tool_calls")["content"] == blocks


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "Another text"}, {"type": "compaction", "content": "x"}],
        [{"type": "text", "text": "It rains."}, {"type": "tool_use", "id": "toolu_hidden", "name": "a", "input": {}}],
        [{"type": "text", "text": "It rains."}, {"type": "reference", "reference_ids": [1]}],
        [{"text": "It rains."}],
        "It rains.",
    ],
)
def test_blocks__of_another_text_or_vendor__the_message_counts(content: Any) -> None:
    made = answer({"content": "It rains.", "provider_specific_fields": {"content": content}})
    assert made["content"] == [text("It rains.")]


def test_annotations__pages__citations_of_the_text() -> None:
    cited = {"url": "https://w.test", "title": "W", "start_index": 3, "end_index": 8}
    annotations = [
        {"type": "url_citation", "url_citation": cited},
        {"type": "url_citation", "url_citation": {"url": "https://v.test"}},
        {"type": "file_citation", "file_citation": {"file_id": "f"}},
    ]
    read = read_whole(
        SURFACE.answer(
            SURFACE.read(ask()), completion({"content": "It rains.", "annotations": annotations}), REQUEST_ID
        )
    )
    (block,) = read.content
    assert block.type == "text"
    assert [(one.type, one.cited_text) for one in block.citations or ()] == [
        ("web_search_result_location", "rains"),
        ("web_search_result_location", ""),
    ]


def test_refusal__of_a_model__its_text_and_its_reason() -> None:
    made = answer({"content": None, "refusal": "I cannot."})
    assert (made["content"], made["stop_reason"]) == ([text("I cannot.")], "refusal")
    assert made["stop_details"] == {"type": "refusal", "category": None, "explanation": "I cannot."}


def test_refusal__of_claude__its_own_details() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "No."}
    fields = {"stop_details": details, "context_management": {"applied_edits": []}}
    made = answer({"content": "Well", "refusal": "No.", "provider_specific_fields": fields}, "content_filter")
    assert (made["content"], made["stop_reason"], made["stop_details"]) == ([text("Well")], "refusal", details)
    assert made["context_management"] == {"applied_edits": []}


def test_container__of_code__in_the_message() -> None:
    container = {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}
    assert answer({"content": "x", "container": container})["container"] == container


def test_usage__cached_and_reasoning__in_the_vendors_parts() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 8},
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
        "cache_creation": {"ephemeral_1h_input_tokens": 10, "ephemeral_5m_input_tokens": 0},
    }
    assert answer({"content": "x"}, usage=usage)["usage"] == {
        "input_tokens": 30,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 60,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 8},
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
        "cache_creation": {"ephemeral_1h_input_tokens": 10, "ephemeral_5m_input_tokens": 0},
    }


@pytest.mark.parametrize("more", [{"choices": []}, {"usage": None}, {"model": None}])
def test_answer__something_missing__still_a_message(more: Json) -> None:
    body = json.loads(completion({"content": "x"}))
    read = read_whole(SURFACE.answer(SURFACE.read(ask()), json.dumps({**body, **more}).encode(), REQUEST_ID))
    assert (read.type, read.role) == ("message", "assistant")
