"""Tests thinking, broken answers and errors of Mistral, whole and streamed."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.mistral import ADAPTER
from integrations.providers.mistral.thinking import FORMAT
from integrations.providers.usage import Usage
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import chat_request, chunk, completion, credentials, decoded, run, sse, translator

REQUEST = chat_request("magistral-medium-latest")


def think(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}


def answered(content: Any, finish: str = "stop", **usage: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    body = completion(choices=[choice])
    body["usage"].update(usage)
    answer: dict[str, Any] = json.loads(ADAPTER.parse_response(REQUEST, json.dumps(body).encode()).body)
    return answer


def streamed(*chunks: dict[str, Any]) -> dict[str, Any]:
    events = run(translator("mistral"), [sse(*chunks)])
    return assembled(decoded(events))


def entry(text: str, index: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": text, "format": FORMAT, "index": index, **more}


def test_answer__plain__the_same_bytes() -> None:
    body = json.dumps(completion()).encode()
    assert ADAPTER.parse_response(REQUEST, body).body is body


def test_answer__the_word_thinking_in_a_text__the_same_bytes() -> None:
    body = json.dumps(completion(note="thinking")).encode()
    assert ADAPTER.parse_response(REQUEST, body).body is body


@pytest.mark.parametrize(
    ("content", "text", "reasoning", "details"),
    [
        ([think("hm"), {"type": "text", "text": "a"}], "a", "hm", [entry("hm")]),
        ([think("hm", signature="s")], "", "hm", [entry("hm", signature="s")]),
        ([think("h"), think("m"), "a"], "a", "hm", [entry("h"), entry("m", 1)]),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], "a", "hm", [entry("hm")]),
        (
            [
                {
                    "type": "thinking",
                    "thinking": [{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "x"}],
                },
                {"type": "reference", "reference_ids": [1]},
                {"type": "text", "text": "a"},
            ],
            "a",
            "x",
            [entry("x")],
        ),
    ],
    ids=str,
)
def test_answer__thinking__text_and_entries_to_send_back(
    content: Any, text: str, reasoning: str, details: list[Any]
) -> None:
    message = answered(content)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == (text, reasoning)
    assert message["reasoning_details"] == details


@pytest.mark.parametrize(("reason", "expected"), [("model_length", "length"), ("length", "length"), ("stop", "stop")])
def test_answer__mistrals_reasons__openais(reason: str, expected: str) -> None:
    assert answered("a", reason)["choices"][0]["finish_reason"] == expected


def test_answer__ended_with_an_error__a_failure() -> None:
    with pytest.raises(ProviderError) as caught:
        answered("half", "error")
    assert caught.value.kind is FailureKind.UNAVAILABLE


def test_usage__cached_under_the_older_name__read() -> None:
    body = completion()
    body["usage"]["num_cached_tokens"] = 3
    assert ADAPTER.parse_response(REQUEST, json.dumps(body).encode()).usage == Usage(9, 4, cache_read_tokens=3)


def test_stream__thinking_then_text__entry_once_and_complete() -> None:
    events = run(
        translator("mistral"),
        [
            sse(
                chunk({"role": "assistant", "content": ""}),
                chunk({"content": [think("h")]}),
                chunk({"content": [think("m")]}),
                chunk({"content": "a"}),
                chunk({"content": "b"}),
                chunk(
                    {"content": ""},
                    finish="stop",
                    usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
                ),
            )
        ],
    )
    deltas = [one["choices"][0]["delta"] for one in decoded(events)]
    assert [delta.get("reasoning_content") for delta in deltas] == [None, "h", "m", None, None, None]
    assert [delta.get("reasoning_details") for delta in deltas] == [None, None, None, [entry("hm")], None, None]
    assert [event.text for event in events] == ["", "", "", "a", "b", ""]
    assert [event.has_output for event in events] == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    "ends",
    [
        [chunk({"content": [think("m", signature="s")]}), chunk({"content": "a"}, finish="stop")],
        [chunk({"content": [think("m")]}), chunk({"content": [think("", signature="s")]}, finish="stop")],
    ],
)
def test_stream__signed_thinking__signature_in_the_entry(ends: list[dict[str, Any]]) -> None:
    message = streamed(chunk({"content": [think("h")]}), *ends)["message"]
    assert message["reasoning_details"] == [entry("hm", signature="s")]
    assert message["reasoning_content"] == "hm"


def test_stream__thinking_then_calls__entry_with_the_calls() -> None:
    call = {"id": "aB3dE6gH9", "function": {"name": "f", "arguments": "{}"}, "index": 0}
    choice = streamed(chunk({"content": [think("hm")]}), chunk({"tool_calls": [call]}, finish="tool_calls"))
    assert choice["message"]["reasoning_details"] == [entry("hm")]
    assert choice["message"]["tool_calls"][0]["id"] == "aB3dE6gH9"
    assert choice["finish_reason"] == "tool_calls"


def test_stream__nothing_but_thinking__entry_before_the_end() -> None:
    choice = streamed(chunk({"content": [think("hm")]}), chunk({"content": ""}, finish="length"))
    assert (choice["message"]["reasoning_details"], choice["finish_reason"]) == ([entry("hm")], "length")


def test_stream__thinking_after_text__a_second_entry() -> None:
    choice = streamed(
        chunk({"content": [think("one")]}),
        chunk({"content": "a"}),
        chunk({"content": [think("two")]}),
        chunk({"content": "b"}, finish="stop"),
    )
    assert choice["message"]["reasoning_details"] == [entry("one"), entry("two", 1)]
    assert choice["message"]["content"] == "ab"


@given(
    st.lists(st.one_of(st.text(min_size=1).map(lambda text: [think(text)]), st.text(min_size=1)), max_size=8),
    st.lists(st.integers(0, 4000), max_size=8),
)
def test_stream__any_mix_cut_anywhere__nothing_lost(contents: list[Any], cuts: list[int]) -> None:
    data = sse(*(chunk({"content": content}) for content in contents), chunk({}, finish="stop"))
    borders = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    pieces = [data[a:b] for a, b in pairwise(borders)]
    message = assembled(decoded(run(translator("mistral"), pieces)))["message"]
    thoughts = [content[0]["thinking"][0]["text"] for content in contents if isinstance(content, list)]
    assert (message["content"] or "") == "".join(content for content in contents if isinstance(content, str))
    assert message.get("reasoning_content", "") == "".join(thoughts)
    assert "".join(detail["text"] for detail in message.get("reasoning_details", ())) == "".join(thoughts)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "rate_limited", "code": "1300"}, FailureKind.RATE_LIMITED),
        ({"type": "service_tier_capacity_exceeded", "code": "3505"}, FailureKind.RATE_LIMITED),
        ({"type": "internal_server_error", "code": "1000"}, FailureKind.UNAVAILABLE),
        ({"type": "invalid_request_message_order", "code": "3230"}, FailureKind.REJECTED),
        ({"type": "whatever", "code": "3000", "raw_status_code": 400}, FailureKind.REJECTED),
    ],
    ids=str,
)
def test_stream__error_event__kind_by_its_type(error: dict[str, Any], kind: FailureKind) -> None:
    stream = translator("mistral")
    events = stream.feed(sse(chunk({"content": "a"}), {"object": "error", "message": "no luck", **error}))
    assert [event.text for event in events] == ["a"]
    with pytest.raises(ProviderError, match="no luck") as caught:
        stream.closing()
    assert caught.value.kind is kind


@pytest.mark.parametrize("body", [b"{", b"[1]", b"null", b'{"choices": [{"message": "thinking"}]}'])
def test_answer__no_answer__unusable(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        ADAPTER.parse_response(REQUEST, body + b' "thinking"' if body == b"{" else body)
    assert caught.value.kind is FailureKind.UNUSABLE


def test_needs__anything__nothing_is_fetched() -> None:
    part = {"type": "document_url", "document_url": {"url": "https://x/a.pdf"}}
    request = chat_request("m", messages=[{"role": "user", "content": [part]}])
    assert not ADAPTER.needs(request, credentials("mistral")).media


TEXT: dict[str, Any] = {"type": "text", "text": "It rains"}
REFERENCE: dict[str, Any] = {"type": "reference", "reference_ids": [1, 4]}
END: dict[str, Any] = {"type": "text", "text": "."}


def test_answer__with_references__its_parts_as_they_came() -> None:
    message = answered([think("hm"), TEXT, REFERENCE, "."])["choices"][0]["message"]
    assert message["content"] == "It rains."
    assert message["reasoning_content"] == "hm"
    assert message["provider_specific_fields"] == {"content": [TEXT, REFERENCE, END]}


def test_answer__of_text_parts_alone__has_none() -> None:
    message = answered([TEXT, {"type": "text", "text": ' "reference"'}])["choices"][0]["message"]
    assert message == {"role": "assistant", "content": 'It rains "reference"'}


@pytest.mark.parametrize(
    "deltas",
    [
        [{"content": "It "}, {"content": "rains"}, {"content": [REFERENCE]}, {"content": "."}, {}],
        [{"content": [TEXT, REFERENCE, END]}],
        [{"content": "It rains"}, {"content": [REFERENCE, END]}, {"content": ""}],
        [
            {"content": [think("hm")]},
            {"content": "It "},
            {"content": [{"type": "text", "text": "rains"}, REFERENCE, "."]},
        ],
        [{"content": "It rains"}, {"content": [REFERENCE]}, {"content": "."}],
    ],
    ids=str,
)
def test_stream__with_references__its_parts_once_whole(deltas: list[dict[str, Any]]) -> None:
    *before, last = [chunk(delta) for delta in deltas]
    last["choices"][0]["finish_reason"] = "stop"
    chunks = decoded(run(translator("mistral"), [sse(chunk({"role": "assistant", "content": ""}), *before, last)]))
    chunk_deltas = [choice["delta"] for item in chunks for choice in item["choices"]]
    assert "".join(delta.get("content") or "" for delta in chunk_deltas) == "It rains."
    specific = [delta["provider_specific_fields"] for delta in chunk_deltas if "provider_specific_fields" in delta]
    assert specific == [{"content": [TEXT, REFERENCE, END]}]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"][0]["delta"] == {}


REASONS = {"stop": "stop", "length": "length", "model_length": "length", "tool_calls": "tool_calls"}


@pytest.mark.parametrize("reason", REASONS)
def test_reason__documented__one_that_clients_know(reason: str) -> None:
    assert answered("Hal", reason)["choices"][0]["finish_reason"] == REASONS[reason]
    assert streamed(chunk({"content": "Hal"}), chunk({}, finish=reason))["finish_reason"] == REASONS[reason]


@pytest.mark.parametrize("content", ["Hal", ""])
def test_reason__error__a_failure_whole_and_streamed(content: str) -> None:
    with pytest.raises(ProviderError, match="mistral broke the answer off: error"):
        answered(content, "error")
    with pytest.raises(ProviderError, match="mistral broke the answer off: error"):
        streamed(chunk({"content": content}), chunk({}, finish="error"))


@pytest.mark.parametrize("content", [None, ""])
def test_reason__that_nobody_knows__no_answer_by_itself(content: str | None) -> None:
    assert answered("Hal", "tomorrows")["choices"][0]["finish_reason"] == "stop"
    with pytest.raises(ProviderError, match="tomorrows"):
        answered(content, "tomorrows")
