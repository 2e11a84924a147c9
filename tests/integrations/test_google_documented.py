"""Tests answers with every documented part and finish reason, whole and streamed: the client gets the same, with all
texts. https://ai.google.dev/api/generate-content, https://ai.google.dev/api/caching#Part"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.google import GEMINI
from tests.integrations.adapters.assembled import as_the_sdk_does, assembled
from tests.integrations.adapters.subject import pieces
from tests.integrations.exchanges import chat_request, decoded, run
from tests.integrations.google_exchanges import array, sse
from tests.night import examples

Json = dict[str, Any]
PNG = {"mimeType": "image/png", "data": "cG5n"}
PARTS: list[Json] = [
    {"text": "Hallo 👋 "},
    {"text": ""},
    {"text": "hm", "thought": True},
    {"text": "signed thought", "thought": True, "thoughtSignature": "c2ln"},
    {"text": "signed", "thoughtSignature": "QQ=="},
    {"text": "", "thoughtSignature": "Qg=="},
    {"thoughtSignature": "Qw=="},
    {},
    {"functionCall": {"name": "f", "args": {"a": 1}}},
    {"functionCall": {"name": "g", "args": {}, "id": "x1"}, "thoughtSignature": "RA=="},
    {"functionCall": {"name": "h"}},
    {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "e"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", "id": "e"}},
    {"inlineData": PNG},
    {"inlineData": PNG, "thoughtSignature": "Rg=="},
    {"inlineData": PNG, "thought": True},
    {"inlineData": {"mimeType": "audio/wav", "data": "cG5n"}},
    {"fileData": {"fileUri": "gs://x", "mimeType": "image/png"}},
    {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {}, "id": "q"}, "thoughtSignature": "Rw=="},
    {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "q"}},
    {"partOfTomorrow": {"text": "x"}},
]
META: list[Json] = [
    {},
    {
        "groundingMetadata": {
            "webSearchQueries": ["x"],
            "searchEntryPoint": {"renderedContent": "<x>"},
            "groundingChunks": [{"web": {"uri": "https://a.org", "title": "A"}}, {"maps": {"uri": "https://m.org"}}],
            "groundingSupports": [{"segment": {"endIndex": 3}, "groundingChunkIndices": [0]}],
        }
    },
    {"urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "https://a"}]}, "tokenCount": 5, "avgLogprobs": -0.1},
    {"citationMetadata": {"citationSources": [{"startIndex": 1, "endIndex": 2, "uri": "https://c.org"}]}},
    {"safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "blocked": True}], "finishMessage": "Why."},
]
REASONS = {
    **dict.fromkeys(("STOP", "OTHER", "REASON_OF_TOMORROW"), "stop"),
    "MAX_TOKENS": "length",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "content_filter"),
}
USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "toolUsePromptTokenCount": 8}
HEAD = {"modelVersion": "gemini-x", "responseId": "r1"}


@settings(max_examples=examples(40, 150), deadline=None)
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=6),
    reason=st.sampled_from(sorted(REASONS)),
    meta=st.sampled_from(META),
    form=st.sampled_from([sse, array]),
    last=st.sampled_from([{}, {"content": {}}, {"content": {"parts": [{"text": ""}], "role": "model"}}]),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=6),
)
def test_answer__of_documented_parts__the_same_whole_and_streamed(
    parts: list[Json], reason: str, meta: Json, form: Any, last: Json, cuts: list[int]
) -> None:
    end = {"finishReason": reason, "index": 0, **meta}
    if reason in ("OTHER", "REASON_OF_TOMORROW"):
        parts = [*parts, {"text": "what makes it an answer"}]
    response = {"candidates": [{"content": {"parts": parts, "role": "model"}, **end}], "usageMetadata": USAGE, **HEAD}
    answer = json.loads(GEMINI.parse_response(chat_request("gemini-x"), json.dumps(response).encode()).body)
    message = answer["choices"][0]["message"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert (message["content"] or "") == "".join(part.get("text", "") for part in parts if not part.get("thought"))
    assert message.get("reasoning_content", "") == "".join(part.get("text", "") for part in parts if "thought" in part)
    assert [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", [])
    ] == [(call["name"], call.get("args", {})) for call in calls]
    assert len({call["id"] for call in message.get("tool_calls", [])}) == len(calls)
    reason = "tool_calls" if calls and REASONS[reason] == "stop" else REASONS[reason]
    assert answer["choices"][0]["finish_reason"] == reason
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (18, 12)

    events = [{"candidates": [{"content": {"parts": [part], "role": "model"}}], **HEAD} for part in parts]
    wire = form(*events, {"candidates": [{**last, **end}], "usageMetadata": USAGE, **HEAD})
    chunks = decoded(run(GEMINI.stream(chat_request("gemini-x", stream=True)), list(pieces(wire, cuts))))
    lists = as_the_sdk_does(chunks)
    for name in ("annotations", "images"):
        assert without_index(lists.get(name, [])) == without_index(message.pop(name, []))
    streamed = assembled(chunks)
    assert compact({**streamed["message"], "content": streamed["message"]["content"] or ""}) == compact(
        {**message, "content": message["content"] or ""}
    )
    assert (streamed["finish_reason"], streamed["usage"]) == (reason, answer["usage"])


def without_index(entries: list[Json]) -> list[Json]:
    return [{name: value for name, value in entry.items() if name != "index"} for entry in entries]


def compact(message: Json) -> Json:
    """Returns the message with compact arguments, since Google's white space in them depends on the form of the
    answer."""
    for call in message.get("tool_calls", []):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message
