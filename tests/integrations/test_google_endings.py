"""Tests every finish reason of Gemini in the SDK's own list, and the outcome for the client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types

from integrations.providers.base import ParsedResponse
from integrations.providers.errors import ProviderError
from integrations.providers.google import GEMINI, GoogleAdapter
from integrations.providers.usage import Usage
from tests.integrations.exchanges import chat_request, decoded, run
from tests.integrations.google_exchanges import answer, body, call, sse

TEXT = {"text": "Hallo"}
THOUGHT = {"text": "hm", "thought": True}
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}
CODE = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}

# Every finish reason is mapped to its outcome with a text and without one; "unusable" is a failure, after which other
# providers are tried.
ENDINGS = {
    "FINISH_REASON_UNSPECIFIED": ("stop", "unusable"),  # Google sends this reason while an answer has not ended.
    "STOP": ("stop", "stop"),
    "MAX_TOKENS": ("length", "length"),
    "CONTINUATION": ("length", "length"),
    "SAFETY": ("content_filter", "content_filter"),
    "RECITATION": ("content_filter", "content_filter"),
    "LANGUAGE": ("content_filter", "content_filter"),
    "BLOCKLIST": ("content_filter", "content_filter"),
    "PROHIBITED_CONTENT": ("content_filter", "content_filter"),
    "SPII": ("content_filter", "content_filter"),
    "MODEL_ARMOR": ("content_filter", "content_filter"),
    "ESCALATION": ("content_filter", "content_filter"),
    "IMAGE_SAFETY": ("content_filter", "content_filter"),
    "IMAGE_PROHIBITED_CONTENT": ("content_filter", "content_filter"),
    "IMAGE_RECITATION": ("content_filter", "content_filter"),
    "OTHER": ("stop", "unusable"),
    "IMAGE_OTHER": ("stop", "unusable"),
    "NO_IMAGE": ("stop", "unusable"),
    "MALFORMED_FUNCTION_CALL": ("unusable", "unusable"),
    "MALFORMED_RESPONSE": ("unusable", "unusable"),
    "MISSING_THOUGHT_SIGNATURE": ("unusable", "unusable"),
    "PUP_LIMITED_DISABLED": ("unusable", "unusable"),
    "TOO_MANY_TOOL_CALLS": ("unusable", "unusable"),
    "UNEXPECTED_TOOL_CALL": ("unusable", "unusable"),
}
UNKNOWN: dict[Any, tuple[str, str]] = {
    "REASON_OF_TOMORROW": ("stop", "unusable"),
    99: ("stop", "unusable"),
    -1: ("stop", "unusable"),
}
# Vertex AI numbers its finish reasons like this when a client asks for enumerations by number.
NUMBERED = {
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    5: "OTHER",
    9: "MALFORMED_FUNCTION_CALL",
    10: "MODEL_ARMOR",
    15: "UNEXPECTED_TOOL_CALL",
}
NATIVE = [*ENDINGS.items(), *UNKNOWN.items(), *((number, ENDINGS[name]) for number, name in NUMBERED.items())]


def whole(response: Any, adapter: GoogleAdapter = GEMINI) -> ParsedResponse:
    return adapter.parse_response(chat_request("gemini-x"), body(response))


def end_of(response: Any) -> str:
    """Returns the finish reason, which is the same whole and streamed, or the kind of the failure."""
    try:
        outcome = str(json.loads(whole(response).body)["choices"][0]["finish_reason"])
    except ProviderError as failure:
        outcome = failure.kind.value
    assert end_of_stream(response) == outcome
    return outcome


def end_of_stream(*events: Any) -> str:
    try:
        chunks = decoded(run(GEMINI.stream(chat_request("gemini-x", stream=True)), [sse(*events)]))
    except ProviderError as failure:
        return failure.kind.value
    return str(chunks[-1]["choices"][0]["finish_reason"])


def test_reasons__of_the_sdk__all_named_here() -> None:
    assert {reason.value for reason in types.FinishReason} == set(ENDINGS)


@pytest.mark.parametrize(("native", "ends"), NATIVE, ids=str)
def test_answer__every_reason__with_and_without_a_text(native: Any, ends: tuple[str, str]) -> None:
    with_text, without = ends
    if native != "FINISH_REASON_UNSPECIFIED":
        assert end_of(answer(TEXT, finish=native)) == with_text
    assert end_of(answer(finish=native)) == end_of(answer(THOUGHT, finish=native)) == without
    assert end_of(answer(CODE, finish=native)) == without


@pytest.mark.parametrize("native", ["SAFETY", "safety", "Safety"])
def test_reason__in_any_case__the_same(native: str) -> None:
    assert end_of(answer(TEXT, finish=native)) == "content_filter"


@pytest.mark.parametrize("part", [call(), PICTURE])
@pytest.mark.parametrize("native", ["OTHER", "REASON_OF_TOMORROW"])
def test_answer__unspecified_reason__kept_for_its_call_or_image(part: dict[str, Any], native: str) -> None:
    assert end_of(answer(part, finish=native)) == ("tool_calls" if "functionCall" in part else "stop")


def test_block_reasons__of_the_sdk__all_tested_below() -> None:
    assert {reason.value for reason in types.BlockedReason} == set(BLOCKED)


BLOCKED = (
    "BLOCKED_REASON_UNSPECIFIED",
    "SAFETY",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
    "JAILBREAK",
)


@pytest.mark.parametrize("reason", [*BLOCKED, "REASON_OF_TOMORROW", 4])
@pytest.mark.parametrize("counts", [{}, {"usageMetadata": {}}, {"usageMetadata": {"trafficType": "ON_DEMAND"}}])
def test_blocked_prompt__every_reason__filtered_and_zeros_where_nothing_was_counted(
    reason: Any, counts: dict[str, Any]
) -> None:
    response = {"promptFeedback": {"blockReason": reason}, **counts}
    parsed = whole(response)
    assert parsed.usage == Usage()
    completion = json.loads(parsed.body)
    assert (completion["choices"][0]["finish_reason"], completion["usage"]) == ("content_filter", ZEROS)
    stream = GEMINI.stream(chat_request("gemini-x", stream=True))
    chunks = decoded(stream.feed(sse(response)))
    assert stream.usage == Usage()  # The usage is known to be zero, so that the pipeline does not estimate it.
    chunks += decoded(stream.closing())
    assert (chunks[-1]["choices"][0]["finish_reason"], chunks[-1]["usage"]) == ("content_filter", ZEROS)
