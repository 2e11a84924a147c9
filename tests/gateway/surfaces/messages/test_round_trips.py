"""Tests that reasoning goes through the client and into the next request as its vendor wants it back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.surfaces.messages.foreign import SEAL, without_foreign
from gateway.surfaces.messages.surface import SURFACE
from integrations.registry import adapter_for
from tests.gateway.surfaces.messages.clients import (
    ASK,
    LAST,
    REQUEST_ID,
    answer,
    ask,
    chat_request,
    chunk,
    read_stream,
    streamed,
)
from tests.integrations.exchanges import credentials, run

Json = dict[str, Any]

CALL = {"id": "call_1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
GEMINI: list[Json] = [
    {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "google-gemini-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "ZGF0", "format": "google-gemini-v1", "index": 1, "id": "call_1"},
]
MISTRAL: list[Json] = [
    {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "mistral-thinking-v1", "index": 0}
]
SUMMARY: list[Json] = [
    {"type": "reasoning.summary", "summary": "Hm.", "format": "openai-responses-v1", "index": 0, "id": "rs_1"},
    {"type": "reasoning.encrypted", "data": "ZGF0", "format": "openai-responses-v1", "index": 0, "id": "rs_1"},
]
CLAUDE: list[Json] = [
    {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "ZGF0", "format": "anthropic-claude-v1", "index": 1},
]


def sent_back(content: list[Json]) -> Json:
    """Returns the assistant's message of the chat completion that follows, and beside it a result of the tool."""
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "pong"}
    messages = [*ASK["messages"], {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    made: Json = json.loads(SURFACE.read(ask(messages=messages)).body)["messages"][1]
    return made


def by_type(details: list[Json]) -> list[str]:
    return sorted(json.dumps(detail, sort_keys=True) for detail in details)


@pytest.mark.parametrize("details", [GEMINI, MISTRAL, SUMMARY, CLAUDE], ids=lambda details: details[0]["format"])
def test_details__of_any_vendor__come_back_whole(details: list[Json]) -> None:
    message = {"content": None, "tool_calls": [CALL], "reasoning_content": "Hm.", "reasoning_details": details}
    back = sent_back(answer(message, "tool_calls")["content"])
    assert by_type(back["reasoning_details"]) == by_type(details)
    assert (back["reasoning_content"], back["tool_calls"][0]["id"]) == ("Hm.", "call_1")


@pytest.mark.parametrize("details", [GEMINI, MISTRAL, CLAUDE], ids=lambda details: details[0]["format"])
def test_details__streamed__come_back_whole(details: list[Json]) -> None:
    call = {"index": 0, **CALL}
    chunks = [chunk({"reasoning_content": "Hm."}), *(chunk({"reasoning_details": [one]}) for one in details)]
    read = read_stream(streamed([*chunks, chunk({"tool_calls": [call]}), LAST]))
    content: Any = read.to_dict()["content"]
    assert by_type(sent_back(content)["reasoning_details"]) == by_type(details)


def test_details__a_signed_piece_behind_an_unsigned_one__come_back_whole() -> None:
    signed = GEMINI[0]
    piece = chunk({"reasoning_content": "Hm.", "reasoning_details": [signed]})
    read = read_stream(streamed([chunk({"reasoning_content": "So. "}), piece, chunk({"content": "Hi"}), LAST]))
    content: Any = read.to_dict()["content"]
    back = sent_back(content)
    assert (back["reasoning_content"], back["reasoning_details"]) == ("So. Hm.", [signed])
    whole = answer({"content": "Hi", "reasoning_content": "So. Hm.", "reasoning_details": [signed]})["content"]
    assert sent_back(whole) == back


def test_reasoning__that_no_vendor_signed__comes_back_as_text() -> None:
    back = sent_back(answer({"content": "Hi", "reasoning_content": "Hm."})["content"])
    assert back == {"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}


def test_gemini__call_with_a_signature__the_vendor_gets_it_again() -> None:
    part = {"functionCall": {"name": "ping", "args": {}}, "thoughtSignature": "c2ln"}
    vendors = {
        "responseId": "r1",
        "modelVersion": "gemini-3-pro",
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
    }
    adapter = adapter_for("google")
    request = chat_request(SURFACE.read(ask(model="gemini-3-pro", stream=True)).body)
    body = b"data: " + json.dumps(vendors).encode() + b"\r\n\r\n"
    read = read_stream(streamed(event.data for event in run(adapter.stream(request), [body])))
    (_, call) = read.content
    assert call.type == "tool_use"
    content: Any = read.to_dict()["content"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "pong"}
    messages = [*ASK["messages"], {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    again = chat_request(SURFACE.read(ask(model="gemini-3-pro", messages=messages)).body)
    made = json.loads(adapter.build_request(again, credentials("google")).body)
    assert made["contents"][1]["parts"][0]["thoughtSignature"] == "c2ln"


def test_without_foreign__reasoning_and_citations_of_others__taken_out() -> None:
    cited = {"url": "https://w.test", "title": "W", "start_index": 0, "end_index": 2}
    annotations = [{"type": "url_citation", "url_citation": cited}]
    content = answer(
        {"content": "Hi", "annotations": annotations, "reasoning_content": "Hm.", "reasoning_details": MISTRAL}
    )["content"]
    claudes = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    unsigned = answer({"content": None, "reasoning_content": "Hm."})["content"]
    messages = [
        *ASK["messages"],
        {"role": "assistant", "content": [claudes, *content]},
        {"role": "assistant", "content": unsigned},
    ]
    body = ask(messages=messages, temperature=1.0)
    assert SEAL.encode() in body
    made = json.loads(without_foreign(body))
    own = {"role": "assistant", "content": [claudes, {"type": "text", "text": "Hi"}]}
    assert made == {**json.loads(body), "messages": [*ASK["messages"], own]}


def test_without_foreign__nothing_of_others__the_same_bytes() -> None:
    body = ask(messages=[*ASK["messages"], {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}])
    assert without_foreign(body) is body


def test_citations_of_others__in_the_next_request__left_out() -> None:
    cited = {"url": "https://w.test", "title": "W", "start_index": 0, "end_index": 2}
    content = answer({"content": "Hi", "annotations": [{"type": "url_citation", "url_citation": cited}]})["content"]
    assert sent_back(content) == {"role": "assistant", "content": "Hi"}


def test_answer__next_request__takes_every_block() -> None:
    message = {"content": "Hi", "tool_calls": [CALL], "reasoning_content": "Hm.", "reasoning_details": GEMINI}
    made = answer(message, "tool_calls", id="")
    assert made["id"] == f"msg_{REQUEST_ID.replace('-', '')}"
    back = sent_back(made["content"])
    assert (back["content"], back["tool_calls"]) == ("Hi", [CALL])
    assert "provider_specific_fields" not in back
