"""Tests the translation of Gemini's whole answers and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import ParsedResponse
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.google import GEMINI, VERTEX
from integrations.providers.usage import Usage
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.google_exchanges import answer, body, call

TEXT = {"text": "Hallo 👋"}
SIGNED = {"thoughtSignature": "c2lnbmVk"}


def parsed(response: Any, *, model: str = "gemini-2.5-flash") -> ParsedResponse:
    return GEMINI.parse_response(chat_request(model), body(response))


def choice_of(response: Any, index: int = 0) -> dict[str, Any]:
    choice: dict[str, Any] = json.loads(parsed(response).body)["choices"][index]
    return choice


def message_of(response: Any) -> dict[str, Any]:
    message: dict[str, Any] = choice_of(response)["message"]
    return message


def test_answer__text__joined_and_identified() -> None:
    completion = json.loads(parsed(answer(TEXT, {"text": " Welt"}, createTime="2026-01-02T03:04:05.678901Z")).body)
    assert completion["choices"][0]["message"] == {"role": "assistant", "content": "Hallo 👋 Welt"}
    assert (completion["id"], completion["model"], completion["created"]) == ("resp-1", "gemini-x", 1767323045)
    assert completion["usage"] == {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def test_answer__without_identity__made_up_from_itself() -> None:
    bare = {"candidates": [{"content": {"parts": [TEXT, call()]}}], "createTime": "when?"}
    one, other = (json.loads(parsed(bare, model="m").body) for _ in range(2))
    assert one["model"] == "m"
    assert one["id"] == other["id"] != ""
    assert one["choices"] == other["choices"]
    assert parsed(bare).usage is None


@pytest.mark.parametrize(
    ("native", "reason"),
    [("STOP", "tool_calls"), ("OTHER", "tool_calls"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter")],
)
def test_finish_reason__with_calls__unless_cut(native: str, reason: str) -> None:
    assert choice_of(answer(call(), finish=native))["finish_reason"] == reason


def test_calls__parallel__distinct_ids_and_text_arguments() -> None:
    message = message_of(answer(call(), call(), call("g", id="given"), {"functionCall": {"name": "h"}}))
    calls = message["tool_calls"]
    assert message["content"] is None
    assert [tool_call["function"]["name"] for tool_call in calls] == ["f", "f", "g", "h"]
    assert [json.loads(tool_call["function"]["arguments"]) for tool_call in calls] == [{"a": "ö"}] * 3 + [{}]
    assert len({tool_call["id"] for tool_call in calls}) == 4
    assert calls[2]["id"] == "given"
    assert all(tool_call["id"].startswith("call_") for tool_call in calls if tool_call["id"] != "given")
    assert [tool_call["type"] for tool_call in calls] == ["function"] * 4


def test_calls__of_two_answers__different_ids() -> None:
    ids = {message_of(answer(call(), responseId=name))["tool_calls"][0]["id"] for name in ("a", "b")}
    assert len(ids) == 2


def test_call__signed__in_details_and_extra_content() -> None:
    message = message_of(answer({**call(id="c1"), **SIGNED}, call(id="c2")))
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2lnbmVk"}}
    assert "extra_content" not in message["tool_calls"][1]
    assert message["reasoning_details"] == [
        {"type": "reasoning.encrypted", "data": "c2lnbmVk", "format": "google-gemini-v1", "index": 0, "id": "c1"}
    ]


def test_thoughts__apart_from_the_text() -> None:
    thought = {"text": "Hm. ", "thought": True}
    message = message_of(answer(thought, {**thought, **SIGNED}, {"text": "A"}, {"text": "Bö", **SIGNED}))
    assert (message["content"], message["reasoning_content"]) == ("ABö", "Hm. Hm. ")
    assert [(detail["type"], detail.get("id"), detail["index"]) for detail in message["reasoning_details"]] == [
        ("reasoning.text", None, 0),
        ("reasoning.encrypted", "content:1:3", 1),
    ]


def test_signature__on_a_part_of_its_own__kept_behind_the_text() -> None:
    message = message_of(answer({"text": "Hi"}, SIGNED))
    assert [detail["id"] for detail in message["reasoning_details"]] == ["content:2:2"]


@pytest.mark.parametrize(
    "content", [None, {}, {"role": "model"}, {"parts": []}, {"parts": [{"text": ""}]}, {"parts": None}]
)
def test_empty_answer__any_form__empty_text(content: Any) -> None:
    choice = choice_of({"candidates": [{"content": content, "finishReason": "STOP"}]})
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "stop")


def test_filtered_answer__without_text__has_the_reason() -> None:
    response = answer(finish="SAFETY", candidate={"finishMessage": "Against the rules."})
    assert message_of(response) == {
        "role": "assistant",
        "content": "",
        "refusal": "Against the rules.",
        "provider_specific_fields": {"finishReason": "SAFETY", "finishMessage": "Against the rules."},
    }


@pytest.mark.parametrize("candidates", [{}, {"candidates": []}, {"candidates": None}])
def test_blocked_prompt__no_candidates__filtered_answer(candidates: dict[str, Any]) -> None:
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "No."}
    response = {**candidates, "promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 5}}
    choice = choice_of(response)
    assert choice["finish_reason"] == "content_filter"
    assert choice["message"] == {
        "role": "assistant",
        "content": "",
        "refusal": "No.",
        "provider_specific_fields": {"promptFeedback": feedback},
    }
    assert parsed(response).usage == Usage(prompt_tokens=5)


def test_candidates__several__in_order_of_their_index() -> None:
    response = answer(TEXT)
    response["candidates"] = [
        {"content": {"parts": [{"text": "second"}]}, "index": 1, "finishReason": "MAX_TOKENS"},
        {"content": {"parts": [{"text": "first"}]}, "finishReason": "STOP", "index": 0},
    ]
    choices = json.loads(parsed(response).body)["choices"]
    assert [(c["index"], c["message"]["content"], c["finish_reason"]) for c in choices] == [
        (0, "first", "stop"),
        (1, "second", "length"),
    ]


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 5,
                "candidatesTokenCount": 3,
                "thoughtsTokenCount": 4,
                "cachedContentTokenCount": 8,
            },
            Usage(prompt_tokens=15, completion_tokens=7, cache_read_tokens=8, reasoning_tokens=4),
        ),
        ({"promptTokenCount": 2, "cachedContentTokenCount": 9}, Usage(prompt_tokens=2, cache_read_tokens=2)),
        ({"promptTokenCount": -1, "candidatesTokenCount": -5, "totalTokenCount": 0}, Usage()),
        ({"trafficType": "ON_DEMAND"}, None),
    ],
)
def test_usage__googles_counts__in_ours(counts: dict[str, Any], usage: Usage | None) -> None:
    assert parsed(answer(TEXT, usageMetadata=counts)).usage == usage


def test_images__made__beside_the_text() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    message = message_of(answer(TEXT, image, {**image, "thought": True}, {**image, **SIGNED}))
    assert message["content"] == TEXT["text"]
    assert [entry["image_url"]["url"] for entry in message["images"]] == ["data:image/png;base64,AAAA"] * 2
    assert message["reasoning_details"][0]["id"] == "image:1"


def test_candidates__the_first_without_its_zero__in_order_of_their_index() -> None:
    """Protocol buffers omit an index of zero, at whatever place the candidate stands."""
    response = answer()
    response["candidates"] = [
        {"content": {"parts": [{"text": "two"}]}, "index": 1, "finishReason": "STOP"},
        {"content": {"parts": [{"text": "one"}]}, "finishReason": "STOP"},
    ]
    completion = json.loads(GEMINI.parse_response(chat_request("gemini-2.5-flash"), body(response)).body)
    assert [choice["message"]["content"] for choice in completion["choices"]] == ["one", "two"]


def test_calls__of_one_id__distinct_ids() -> None:
    message = choice_of(answer(call(id="a"), call(id="a")))["message"]
    assert len({one["id"] for one in message["tool_calls"]}) == 2


class TestSources:
    CHUNKS = (
        {"web": {"uri": "https://a.test/", "title": "A"}},
        {"retrievedContext": {"uri": "gs://bucket/file", "title": "no address"}},
        {"maps": {"uri": "https://b.test/", "title": "B"}},
    )

    @staticmethod
    def cited(metadata: dict[str, Any], *parts: dict[str, Any]) -> list[tuple[str, str, str]]:
        message = message_of(answer(*parts, candidate=metadata))
        entries = [entry["url_citation"] for entry in message.get("annotations", ())]
        return [
            (entry["url"], entry["title"], message["content"][entry["start_index"] : entry["end_index"]])
            for entry in entries
        ]

    def test_supports__bytes__as_characters(self) -> None:
        text = "Grüße 👋 Welt"
        start, end = len("Grüße ".encode()), len("Grüße 👋".encode())
        supports = [
            {"segment": {"endIndex": start}, "groundingChunkIndices": [0, 1, 7]},
            {"segment": {"startIndex": start, "endIndex": end}, "groundingChunkIndices": [2]},
            {"segment": {"endIndex": start}, "groundingChunkIndices": [0]},
        ]
        grounding = {"groundingChunks": self.CHUNKS, "groundingSupports": supports}
        assert self.cited({"groundingMetadata": grounding}, {"text": text}) == [
            ("https://a.test/", "A", "Grüße "),
            ("https://b.test/", "B", "👋"),
        ]

    def test_chunk__that_supports_nothing__the_whole_text(self) -> None:
        assert self.cited({"groundingMetadata": {"groundingChunks": self.CHUNKS}}, TEXT) == [
            ("https://a.test/", "A", TEXT["text"]),
            ("https://b.test/", "B", TEXT["text"]),
        ]

    @pytest.mark.parametrize("name", ["citations", "citationSources"])
    def test_citation__of_a_known_work__its_passage(self, name: str) -> None:
        metadata = {name: [{"uri": "https://a.test/", "startIndex": 1, "endIndex": 3}, {"license": "mit"}]}
        assert self.cited({"citationMetadata": metadata}, {"text": "abcdef"}) == [("https://a.test/", "", "bc")]

    @pytest.mark.parametrize("metadata", [None, {}, [], {"groundingChunks": None}, {"groundingChunks": ["x", {}]}])
    def test_metadata__of_no_use__no_sources(self, metadata: Any) -> None:
        assert self.cited({"groundingMetadata": metadata, "citationMetadata": metadata}, TEXT) == []


class TestUnusable:
    @pytest.mark.parametrize(
        "data", [b"", b"<html>", b"[]", b"null", b'{"candidates": 5}', b'{"candidates": [{"content": "\xff"}]}']
    )
    def test_body__no_answer__unusable(self, data: bytes) -> None:
        with pytest.raises(ProviderError) as caught:
            GEMINI.parse_response(chat_request("m"), data)
        assert (caught.value.kind, caught.value.provider) == (FailureKind.UNUSABLE, "google")

    def test_body__no_candidates_and_no_reason__unusable_but_billed(self) -> None:
        with pytest.raises(ProviderError) as caught:
            parsed({"usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}})
        assert (caught.value.kind, caught.value.usage) == (FailureKind.UNUSABLE, Usage(prompt_tokens=5))

    def test_body__an_error__its_kind(self) -> None:
        with pytest.raises(ProviderError, match="overloaded") as caught:
            parsed({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}})
        assert caught.value.kind is FailureKind.UNAVAILABLE


class TestFailures:
    @staticmethod
    def failure(status: int, error: Any, headers: dict[str, str] | None = None) -> ProviderError:
        return VERTEX.classify_failure(status, headers or {}, body(error))

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, FailureKind.REJECTED),
            (401, FailureKind.CREDENTIALS),
            (403, FailureKind.CREDENTIALS),
            (404, FailureKind.NOT_FOUND),
            (429, FailureKind.RATE_LIMITED),
            (499, FailureKind.UNAVAILABLE),
            (500, FailureKind.UNAVAILABLE),
            (503, FailureKind.UNAVAILABLE),
            (504, FailureKind.UNAVAILABLE),
        ],
    )
    def test_status__kind_and_message(self, status: int, kind: FailureKind) -> None:
        error = self.failure(status, {"error": {"code": status, "message": "Because.", "status": "X"}})
        assert (error.kind, error.message, error.status) == (kind, "Because.", status)

    def test_error__in_a_list__read(self) -> None:
        assert self.failure(503, [{"error": {"code": 503, "message": "Because."}}]).message == "Because."

    @pytest.mark.parametrize(
        ("delay", "headers", "seconds"),
        [
            ("7s", {}, 7.0),
            ("3.5s", {}, 3.5),
            ("7s", {"retry-after": "2"}, 2.0),
            ("soon", {}, None),
            ("-1s", {}, None),
            ("1e300s", {}, None),
            (7, {}, None),
        ],
    )
    @pytest.mark.parametrize("listed", [False, True])
    def test_retry_info__without_a_header__the_wait(
        self, delay: Any, headers: dict[str, str], seconds: float | None, listed: bool
    ) -> None:
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}, "odd"]
        error = {"error": {"code": 429, "message": "Quota.", "details": details}}
        assert self.failure(429, [error] if listed else error, headers).retry_after == seconds

    def test_retry_info__where_retrying_is_no_use__none(self) -> None:
        error = {"error": {"code": 400, "message": "No.", "details": [{"retryDelay": "7s"}]}}
        assert self.failure(400, error).retry_after is None

    def test_message__holds_no_keys_and_no_account_numbers(self) -> None:
        access = credentials("google", key="AIzaSyD-a-very-secret-key-0123456789")
        GEMINI.build_request(chat_request("gemini-2.5-flash"), access)
        message = f"API key {access.secret} not valid for projects/123456789012 or project_number:123456789012."
        error = GEMINI.classify_failure(400, {}, body({"error": {"message": message}}))
        assert error.message == "API key [redacted] not valid for projects/[redacted] or project_number:[redacted]."
        assert str(error) == error.message
