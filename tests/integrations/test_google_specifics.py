"""Tests Gemini's own fields in answers: they reach the client in `provider_specific_fields`, whole and streamed, and go
back in order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming._deltas import accumulate_delta
from pydantic import TypeAdapter

from integrations.providers.google import GEMINI, VERTEX
from integrations.registry import adapter_for
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import chat_request, credentials, decoded, run
from tests.integrations.google_exchanges import answer, body, call, sse

Json = dict[str, Any]
THIRD = "gemini-3-flash-preview"
CODE: Json = {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "e"}, "thoughtSignature": "QQ=="}
RESULT: Json = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n", "id": "e"}}
SEARCH: Json = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "x"}, "id": "s"}}
FOUND: Json = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"r": [1]}, "id": "s"}}
PICTURE: Json = {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}
USER: Json = {"role": "user", "content": "Hi"}
META: Json = {
    "groundingMetadata": {"webSearchQueries": ["x"], "searchEntryPoint": {"renderedContent": "<b>"}},
    "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "https://a", "urlRetrievalStatus": "SUCCESS"}]},
    "citationMetadata": {"citations": [{"startIndex": 0, "endIndex": 2, "uri": "https://c.test/"}]},
    "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
}


def message_of(response: Json) -> Json:
    message: Json = json.loads(GEMINI.parse_response(chat_request(THIRD), body(response)).body)["choices"][0]["message"]
    return message


def streamed(*events: Json) -> Json:
    """Returns the message of a client that joins lists and replaces all other values."""
    chunks = decoded(run(GEMINI.stream(chat_request(THIRD, stream=True)), [sse(*events)]))
    message: Json = assembled(chunks)["message"]
    images = [image for chunk in chunks for image in chunk["choices"][0]["delta"].get("images", [])]
    return {**message, "images": images} if images else message


def specific_of(response: Json) -> Json:
    fields: Json = message_of(response).get("provider_specific_fields", {})
    return fields


def sent(*messages: Json, model: str = THIRD, vertex: bool = False) -> list[Json]:
    """Returns the parts of the last model's turn as they are sent, validated by the SDK."""
    access = credentials("google_vertex", project="p") if vertex else credentials("google")
    upstream = (VERTEX if vertex else GEMINI).build_request(chat_request(model, messages=list(messages)), access)
    contents = json.loads(upstream.body)["contents"]
    TypeAdapter(list[types.Content]).validate_json(json.dumps(contents))
    parts: list[Json] = [content["parts"] for content in contents if content["role"] == "model"][-1]
    return parts


def test_metadata__of_an_answer__under_googles_names_whole_and_streamed() -> None:
    assert specific_of(answer({"text": "Hallo"}, candidate=META)) == META
    last = answer(candidate=META)
    assert streamed(answer({"text": "Hallo"}, finish=None), last)["provider_specific_fields"] == META


def test_metadata__in_several_chunks__each_field_as_it_came_last() -> None:
    bits: list[Json] = [
        {"groundingMetadata": {"webSearchQueries": ["x"]}, "safetyRatings": [{"category": "A"}]},
        {"groundingMetadata": {"groundingChunks": []}, "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "1"}]}},
        {"safetyRatings": [{"category": "B"}], "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "2"}]}},
    ]
    events = [answer({"text": "a"}, finish=None, candidate=bit) for bit in bits]
    assert streamed(*events, answer({"text": "b"}))["provider_specific_fields"] == {
        "groundingMetadata": {"webSearchQueries": ["x"], "groundingChunks": []},
        "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "1"}, {"retrievedUrl": "2"}]},
        "safetyRatings": [{"category": "B"}],
    }


def test_plain_answer__carries_nothing_besides() -> None:
    empty: Json = {"groundingMetadata": {}, "safetyRatings": [], "citationMetadata": None, "urlContextMetadata": []}
    assert message_of(answer({"text": "Hi"}, candidate=empty)) == {"role": "assistant", "content": "Hi"}
    assert message_of(answer({"text": "Hi"}, finish="MAX_TOKENS")) == {"role": "assistant", "content": "Hi"}


@pytest.mark.parametrize("finish", ["OTHER", "CONTINUATION", "SAFETY", "REASON_OF_TOMORROW"])
def test_end__without_an_openai_reason__googles_reason_too(finish: str) -> None:
    fields = {"finishMessage": "Because.", "continuationToken": "dG9rZW4="}
    assert specific_of(answer({"text": "Hi"}, finish=finish, candidate=fields)) == {"finishReason": finish, **fields}


def test_prompt_feedback__beside_an_answer__with_the_first_choice() -> None:
    feedback = {"safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}]}
    response = answer({"text": "Hi"}, promptFeedback=feedback)
    assert specific_of(response) == streamed(response)["provider_specific_fields"] == {"promptFeedback": feedback}


def test_tools_of_google__what_they_did__in_its_place_and_no_call() -> None:
    response = answer({"text": "Let me "}, CODE, RESULT, {"text": "see"}, call(), SEARCH, PICTURE, FOUND)
    places = [(7, 0, 0), (7, 0, 0), (10, 1, 0), (10, 1, 1)]
    parts = specific_of(response)["parts"]
    assert [tuple(part.pop("place").values()) for part in parts] == places
    assert parts == [CODE, RESULT, SEARCH, FOUND]
    message = message_of(response)
    assert (message["content"], len(message["tool_calls"]), "reasoning_details" in message) == ("Let me see", 1, False)


def test_stream__code_that_ran__at_once_and_joined_as_the_sdk_does_it() -> None:
    stream = GEMINI.stream(chat_request(THIRD, stream=True))
    events = stream.feed(sse(answer(CODE, finish=None)))
    assert [event.has_output for event in events] == [False, True]
    events += stream.feed(sse(answer(RESULT, finish=None), answer({"text": "1"}, candidate=META)))
    message: dict[object, object] = {}
    for chunk in decoded(events + stream.closing()):
        message = accumulate_delta(message, chunk["choices"][0]["delta"])
    fields: Any = message["provider_specific_fields"]
    assert [part["index"] for part in fields["parts"]] == [0, 1]
    assert fields["groundingMetadata"] == META["groundingMetadata"]


PARTS = st.sampled_from(
    [
        CODE,
        RESULT,
        SEARCH,
        {**FOUND, "thoughtSignature": "Qg=="},
        PICTURE,
        {**call(id="x"), "thoughtSignature": "Qw=="},
        {"text": "ä👋"},
        {"text": "signed", "thoughtSignature": "RA=="},
    ]
)


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(PARTS, min_size=1, max_size=8), is_streamed=st.booleans())
def test_answer__of_any_parts__comes_back_in_its_order(parts: list[Json], is_streamed: bool) -> None:
    """The calls and images come back behind all text, as OpenAI's messages have them; Google's own parts come back
    between them in their order, and adjacent unsigned texts are merged."""
    rank = [2 if "functionCall" in part else 1 if "inlineData" in part else 0 for part in parts]
    own = [
        any(name in part for name in ("executableCode", "codeExecutionResult", "toolCall", "toolResponse"))
        for part in parts
    ]
    reached = [max([rank[i] for i in range(at + 1) if not own[i]], default=0) for at in range(len(parts))]
    # A message of OpenAI's has text, then files, then calls: only parts in that order keep their order.
    expected = [
        part
        for part, mine, is_own, furthest in zip(parts, rank, own, reached, strict=True)
        if is_own or mine == furthest
    ]
    events = [answer(part, finish=None) for part in expected]
    message = streamed(*events, answer()) if is_streamed else message_of(answer(*expected))
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in message.get("tool_calls", [])]
    assert compact(sent(USER, message, *results, USER)) == compact(expected)


def compact(parts: list[Json]) -> list[Json]:
    """Returns the parts with adjacent plain texts merged, and calls without their ids, which have to be distinct."""
    merged: list[Json] = []
    for part in parts:
        plain = part.keys() == {"text"}
        if plain and merged and merged[-1].keys() == {"text"}:
            merged[-1] = {"text": merged[-1]["text"] + part["text"]}
        elif "functionCall" in part:
            signature = part.get("thoughtSignature")
            merged.append({"name": part["functionCall"]["name"], "args": part["functionCall"]["args"], "by": signature})
        else:
            merged.append(part)
    return merged


def entry(part: Json, content: Any = 0, tool_calls: Any = 0, images: Any = 0) -> Json:
    return {**part, "place": {"content": content, "tool_calls": tool_calls, "images": images}}


def assistant(text: str, *parts: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": text, "provider_specific_fields": {"parts": list(parts)}, **more}


def test_parts__behind_one_another_in_two_answers__each_in_its_own() -> None:
    first, second = assistant("abc", entry(CODE, 1)), assistant("def", entry(RESULT, 2))
    assert sent(USER, first, second) == [{"text": "a"}, CODE, {"text": "bc"}, {"text": "de"}, RESULT, {"text": "f"}]


def test_part__inside_a_signed_text__splits_it_and_the_signature_stays_with_its_end() -> None:
    detail = {"type": "reasoning.encrypted", "data": "Qg==", "format": "google-gemini-v1", "id": "content:0:3"}
    parts = sent(USER, assistant("abc", entry(CODE, 1), reasoning_details=[detail]))
    assert parts == [{"text": "a"}, CODE, {"text": "bc", "thoughtSignature": "Qg=="}]


@pytest.mark.parametrize("content", [99, 3])
def test_part__behind_the_end__at_the_end(content: int) -> None:
    assert sent(USER, assistant("abc", entry(CODE, content))) == [{"text": "abc"}, CODE]


@pytest.mark.parametrize(
    ("model", "vertex", "parts"),
    [
        ("gemini-2.5-flash", False, [CODE, {"text": "a"}]),
        (
            "gemini-2.5-flash",
            True,
            [{"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "QQ=="}, {"text": "a"}],
        ),
        (THIRD, True, [CODE, SEARCH, {"text": "a"}]),
    ],
)
def test_part__that_the_model_does_not_know__left_out(model: str, vertex: bool, parts: list[Json]) -> None:
    assert sent(USER, assistant("a", entry(CODE), entry(SEARCH)), model=model, vertex=vertex) == parts


@pytest.mark.parametrize(
    "fields",
    [
        "x",
        ["x"],
        {"parts": "x"},
        {"parts": {"executableCode": {}}},
        {"parts": [None, 1, "x", [], {}]},
        {"parts": [{"executableCode": {"code": "1"}}]},
        {"parts": [{"executableCode": "x", "place": {"content": 0, "tool_calls": 0, "images": 0}}]},
        {"parts": [entry(CODE, -1)]},
        {"parts": [entry(CODE, "0")]},
        {"parts": [entry(CODE, None)]},
        {"parts": [entry({**CODE, **RESULT})]},
        {"parts": [entry({"functionCall": {"name": "f"}})]},
        {"parts": [entry({"text": "not said"})]},
        {"content": [{"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}]},
    ],
)
def test_fields__of_others_or_tampered_with__left_out(fields: Any) -> None:
    message = {"role": "assistant", "content": "a", "provider_specific_fields": fields}
    assert sent(USER, message) == [{"text": "a"}]


def test_part__with_more_than_it_may_hold__without_it() -> None:
    odd = entry({**CODE, "thoughtSignature": 5, "thought": "x", "systemInstruction": {"parts": []}})
    assert sent(USER, assistant("a", odd)) == [{"executableCode": CODE["executableCode"]}, {"text": "a"}]


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "mistral", "cohere"])
def test_fields_of_google__elsewhere__left_out_in_silence(provider: str) -> None:
    adapter = adapter_for(provider)
    access = credentials(provider, access_key_id="a", secret_access_key="s", region="us-east-1")
    model = adapter.traits.default_model
    with_fields, without = assistant("a", entry(CODE)), {"role": "assistant", "content": "a"}
    bodies = [
        adapter.build_request(chat_request(model, messages=[USER, m, USER]), access) for m in (with_fields, without)
    ]
    assert json.loads(bodies[0].body) == json.loads(bodies[1].body)
    assert bodies[0].warnings == bodies[1].warnings
