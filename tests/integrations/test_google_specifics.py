"""Tests Gemini's own fields in answers: they reach the client in `provider_specific_fields`, whole and streamed, and go
back in order."""

from __future__ import annotations

import json
from typing import Any

from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming._deltas import accumulate_delta
from pydantic import TypeAdapter

from integrations.providers.google import GEMINI, VERTEX
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import chat_request, credentials, decoded, run
from tests.integrations.google_exchanges import answer, body, call, sse
from tests.night import examples

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


def sent(*messages: Json, model: str = THIRD, vertex: bool = False) -> list[Json]:
    """Returns the parts of the last model's turn as they are sent, validated by the SDK."""
    access = credentials("google_vertex", project="p") if vertex else credentials("google")
    upstream = (VERTEX if vertex else GEMINI).build_request(chat_request(model, messages=list(messages)), access)
    contents = json.loads(upstream.body)["contents"]
    TypeAdapter(list[types.Content]).validate_json(json.dumps(contents))
    parts: list[Json] = [content["parts"] for content in contents if content["role"] == "model"][-1]
    return parts


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


@settings(max_examples=examples(50, 200), deadline=None)
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
