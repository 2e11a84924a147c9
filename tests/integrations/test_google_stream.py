"""Tests Gemini's streams, in both of Google's forms, cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.base import StreamEvent, StreamTranslator
from integrations.providers.common.sse import MAX_EVENT_BYTES
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.google import GEMINI
from integrations.providers.usage import Usage
from tests.integrations.exchanges import chat_request, decoded, run
from tests.integrations.google_exchanges import answer, array, body, call, sse

Form = Callable[..., bytes]
NOW = 1_800_000_000.0
BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}}
OVERLOADED = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)


def translator() -> StreamTranslator:
    return GEMINI.stream(chat_request("gemini-2.5-flash", stream=True))


def streamed(*events: Any, form: Form = sse) -> tuple[list[dict[str, Any]], StreamTranslator]:
    stream = translator()
    return decoded(run(stream, [form(*events)])), stream


def deltas(chunks: list[dict[str, Any]], index: int = 0) -> list[dict[str, Any]]:
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=5), line_end=st.sampled_from([b"\n", b"\r\n"]))
def test_stream__failure_in_bare_lines_behind_good_events__is_that_failure(cuts: list[int], line_end: bytes) -> None:
    """Google's own SDK reads failures like this: "When API returns an error message, it comes line by line"."""
    failure = json.dumps(OVERLOADED, indent=2).encode().replace(b"\n", line_end)
    wire = sse(answer({"text": "Hal"}, finish=None)) + failure
    stream = translator()
    borders = [0, *sorted(cut % len(wire) for cut in cuts), len(wire)]
    events = [event for start, end in pairwise(borders) for event in stream.feed(wire[start:end])]
    assert [event.text for event in events] == ["", "Hal"]
    with pytest.raises(ProviderError, match="overloaded") as caught:
        stream.closing()
    assert (caught.value.kind, caught.value.status) == (FailureKind.UNAVAILABLE, 503)


def test_stream__candidates_the_first_without_its_zero__apart() -> None:
    first = {"content": {"parts": [{"text": "one"}]}, "finishReason": "STOP"}
    second = {"content": {"parts": [{"text": "two"}]}, "finishReason": "STOP", "index": 1}
    for candidates in ([second, first], [first, second]):
        chunks, _ = streamed({**answer(), "candidates": candidates})
        assert [deltas(chunks, index)[1] for index in (0, 1)] == [{"content": "one"}, {"content": "two"}]


@pytest.mark.parametrize("form", [sse, array])
def test_stream__text_and_thoughts__deltas_and_one_end(form: Form) -> None:
    chunks, stream = streamed(
        answer({"text": "Hm", "thought": True}, finish=None),
        answer({"text": "Hal"}, finish=None),
        answer({"text": "lo 👋"}, finish="STOP"),
        form=form,
    )
    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Hm"},
        {"content": "Hal"},
        {"content": "lo 👋"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 4 + ["stop"]
    assert [chunk.get("usage") for chunk in chunks[:-1]] == [None] * 4
    assert chunks[-1]["usage"] == {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    assert {(chunk["id"], chunk["model"], chunk["created"]) for chunk in chunks} == {("resp-1", "gemini-x", int(NOW))}
    assert (stream.model, stream.finish_reason) == ("gemini-x", "stop")
    assert stream.usage == Usage(prompt_tokens=9, completion_tokens=4)


def test_stream__preamble__is_no_output() -> None:
    events = translator().feed(sse(answer(finish=None), answer({"text": ""}, finish=None)))
    assert [event.has_output for event in events] == [False]


def test_stream__calls_in_several_events__stable_indices_and_distinct_ids() -> None:
    signed = {**call("f"), "thoughtSignature": "c2ln"}
    chunks, stream = streamed(
        answer(signed, call("f"), finish=None), answer(call("g"), finish=None), answer({"text": ""})
    )
    calls = [tool_call for delta in deltas(chunks) for tool_call in delta.get("tool_calls", ())]
    assert [(tool_call["index"], tool_call["function"]["name"]) for tool_call in calls] == [
        (0, "f"),
        (1, "f"),
        (2, "g"),
    ]
    assert len({tool_call["id"] for tool_call in calls}) == 3
    assert [json.loads(tool_call["function"]["arguments"]) for tool_call in calls] == [{"a": "ö"}] * 3
    assert calls[0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    assert stream.finish_reason == "tool_calls"


def test_stream__signature_on_an_empty_text__its_place_behind_the_text() -> None:
    chunks, _ = streamed(answer({"text": "Hallo"}, finish=None), answer({"text": "", "thoughtSignature": "c2ln"}))
    (detail,) = [detail for delta in deltas(chunks) for detail in delta.get("reasoning_details", ())]
    assert (detail["id"], detail["data"], detail["index"]) == ("content:5:5", "c2ln", 0)


def test_stream__two_candidates__each_with_its_end_and_usage_once() -> None:
    both = answer({"text": "a"}, finish=None)
    both["candidates"].append({"content": {"parts": [{"text": "b"}]}, "index": 1, "finishReason": "MAX_TOKENS"})
    chunks, stream = streamed(both, answer({"text": "c"}))
    assert [delta.get("content") for delta in deltas(chunks, 0)] == ["", "a", "c", None]
    assert [delta.get("content") for delta in deltas(chunks, 1)] == ["", "b", None]
    assert [(choice["index"], choice["finish_reason"]) for choice in chunks[-1]["choices"]] == [
        (0, "stop"),
        (1, "length"),
    ]
    assert stream.finish_reason == "stop"
    assert sum("usage" in chunk for chunk in chunks) == 1


def test_stream__blocked_prompt__filtered_answer() -> None:
    chunks, stream = streamed(BLOCKED)
    specific = {"provider_specific_fields": {"promptFeedback": {"blockReason": "SAFETY"}}}
    assert deltas(chunks) == [{"role": "assistant", "content": ""}, specific, {}]
    assert stream.finish_reason == chunks[-1]["choices"][0]["finish_reason"] == "content_filter"
    assert stream.usage == Usage(prompt_tokens=5)


def test_stream__blocked_in_the_middle__ends_filtered() -> None:
    chunks, stream = streamed(answer({"text": "Hal"}, finish=None), BLOCKED)
    specific = {"provider_specific_fields": {"promptFeedback": {"blockReason": "SAFETY"}}}
    assert deltas(chunks)[1:] == [{"content": "Hal"}, specific, {}]
    assert stream.finish_reason == "content_filter"


def test_stream__empty_answer__only_an_end() -> None:
    chunks, stream = streamed({"candidates": [{"content": {}, "finishReason": "STOP"}], "responseId": "r"})
    assert deltas(chunks) == [{"role": "assistant", "content": ""}, {}]
    assert stream.finish_reason == "stop"
    assert stream.usage is None
    assert chunks[-1]["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def test_stream__another_id_and_time_in_each_event__those_of_the_first() -> None:
    events = [
        {**answer({"text": text}, finish=finish), "responseId": name, "createTime": f"2026-01-0{name}T00:00:00Z"}
        for name, text, finish in (("1", "a", None), ("2", "b", None), ("3", "c", "STOP"))
    ]
    chunks, _ = streamed(*events)
    assert {(chunk["id"], chunk["created"]) for chunk in chunks} == {("1", 1767225600)}


def test_stream__id_only_in_a_later_event__one_for_all() -> None:
    first = {name: value for name, value in answer({"text": "a"}, finish=None).items() if name != "responseId"}
    chunks, _ = streamed({**first, "responseId": ""}, answer({"text": "b"}))
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert chunks[0]["id"].startswith("chatcmpl-")


def test_stream__no_usage_reported__an_estimate_may_be_set() -> None:
    stream = translator()
    stream.feed(sse({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}))
    stream.usage = Usage(prompt_tokens=1, completion_tokens=2)
    assert decoded(stream.closing())[-1]["usage"]["total_tokens"] == 3


def test_stream__usage_behind_the_end__counts() -> None:
    late = {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16}}
    early = {"usageMetadata": {"trafficType": "ON_DEMAND"}}
    _, stream = streamed({**answer({"text": "a"}), **early}, late, {**early, "candidates": []})
    assert stream.usage == Usage(prompt_tokens=9, completion_tokens=7)


def test_stream__filtered_without_text__sends_the_reason_before_the_end() -> None:
    chunks, _ = streamed(answer(finish="MODEL_ARMOR", candidate={"finishMessage": "Not allowed."}))
    specific = {"provider_specific_fields": {"finishReason": "MODEL_ARMOR", "finishMessage": "Not allowed."}}
    assert deltas(chunks)[1:] == [{"refusal": "Not allowed."}, specific, {}]


def test_stream__sources__once_when_the_text_is_whole() -> None:
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.test/", "title": "A"}}],
        "groundingSupports": [{"segment": {"startIndex": 5, "endIndex": 9}, "groundingChunkIndices": [0]}],
    }
    chunks, _ = streamed(
        answer({"text": "Grüß"}, finish=None, candidate={"groundingMetadata": {}}),
        answer({"text": "e Welt"}, finish=None, candidate={"groundingMetadata": grounding}),
        answer({"text": "!"}, candidate={"groundingMetadata": grounding}),
    )
    (found,) = [delta["annotations"] for delta in deltas(chunks) if "annotations" in delta]
    citation = {"url": "https://a.test/", "title": "A", "start_index": 3, "end_index": 7}
    assert found == [{"type": "url_citation", "url_citation": citation}]


def test_stream__log_probabilities__with_the_text() -> None:
    result = {"chosenCandidates": [{"token": "ö", "logProbability": -0.5}], "topCandidates": []}
    chunks, _ = streamed(answer({"text": "ö"}, candidate={"logprobsResult": result}))
    (choice,) = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["delta"].get("content")]
    assert choice["logprobs"]["content"] == [{"token": "ö", "logprob": -0.5, "bytes": [195, 182], "top_logprobs": []}]


def test_stream__done_mark_of_a_proxy__ignored() -> None:
    chunks = decoded(run(translator(), [sse(answer({"text": "a"})) + b"data: [DONE]\n\n"]))
    assert deltas(chunks)[1:] == [{"content": "a"}, {}]


@pytest.mark.parametrize("form", [sse, array])
class TestFailing:
    def test_error__behind_output__raised_by_the_next_call_with_usage(self, form: Form) -> None:
        stream = translator()
        events = stream.feed(form(answer({"text": "Hal"}, finish=None), OVERLOADED))
        assert "".join(event.text for event in events) == "Hal"
        for call_again in (stream.closing, lambda: stream.feed(b"")):
            with pytest.raises(ProviderError, match="overloaded") as caught:
                call_again()
            assert caught.value.kind is FailureKind.UNAVAILABLE
            assert caught.value.usage == Usage(prompt_tokens=9, completion_tokens=4)

    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            (400, FailureKind.REJECTED),
            (403, FailureKind.CREDENTIALS),
            (429, FailureKind.RATE_LIMITED),
            (499, FailureKind.UNAVAILABLE),
            (500, FailureKind.UNAVAILABLE),
            (503, FailureKind.UNAVAILABLE),
        ],
    )
    def test_error__first__raised_at_once_by_kind(self, form: Form, code: int, kind: FailureKind) -> None:
        error = {"code": code, "message": "Because.", "details": [{"retryDelay": "4s"}]}
        with pytest.raises(ProviderError, match="Because") as caught:
            translator().feed(form({"error": error}))
        assert (caught.value.kind, caught.value.status) == (kind, code)
        waits = kind in (FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE)
        assert caught.value.retry_after == (4.0 if waits else None)

    def test_end__not_announced__unusable_with_usage(self, form: Form) -> None:
        stream = translator()
        stream.feed(form(answer({"text": "Hal"}, finish=None)))
        with pytest.raises(ProviderError, match="before its end") as caught:
            stream.closing()
        assert caught.value.kind is FailureKind.UNUSABLE
        assert caught.value.usage == Usage(prompt_tokens=9, completion_tokens=4)

    def test_event__of_another_shape__unusable(self, form: Form) -> None:
        with pytest.raises(ProviderError, match="form expected") as caught:
            translator().feed(form({"candidates": "odd"}))
        assert caught.value.kind is FailureKind.UNUSABLE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"  \r\n",
        b"<html>nothing</html>",
        b": ping\n\n",
        b"data: {broken\n\n",
        b"data: {broken",
        b"[",
        b"[]",
        b"{",
        b'{"a"',
        b"[1, 2]",
        b"{}garbage{}",
        b'[{"candidates": []}, oops {}]',
        b'["text"]',
        b"}",
    ],
)
def test_stream__no_answer_at_all__unusable(data: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        run(translator(), [data])
    assert caught.value.kind is FailureKind.UNUSABLE


def test_stream__error_as_a_plain_body__its_kind() -> None:
    """The server ignores that the client asked for a stream."""
    with pytest.raises(ProviderError, match="overloaded"):
        run(translator(), [body(OVERLOADED)])


@pytest.mark.parametrize("start", [b"data: ", b"[{"])
def test_stream__event_without_end__unusable_before_memory_fills(start: bytes) -> None:
    stream = translator()
    stream.feed(start)
    piece = b"x" * (1 << 20)
    with pytest.raises(ProviderError, match="bytes"):
        for _ in range(MAX_EVENT_BYTES // len(piece) + 2):
            stream.feed(piece)


# The texts hold what may confuse a parser of bytes: quotes, brackets and escapes, line ends, characters of several
# bytes.
TEXTS = st.text(alphabet=st.sampled_from(list('ab"\\{}[],:\r\n\u2028ö👋 ')), max_size=12)
PARTS = st.one_of(
    st.builds(lambda text: {"text": text}, TEXTS),
    st.builds(lambda text: {"text": text, "thought": True}, TEXTS),
    st.builds(lambda text: {"text": text, "thoughtSignature": "c2ln"}, TEXTS),
    st.builds(lambda text: {"functionCall": {"name": "f", "args": {text: [text]}}}, TEXTS),
)
CUTS = st.lists(st.integers(0, 4000), max_size=30)


@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(st.lists(PARTS, max_size=3), min_size=1, max_size=4), cuts=CUTS, form=st.sampled_from([sse, array])
)
def test_stream__any_parts_cut_anywhere__nothing_lost_and_byte_equal(
    parts: list[list[dict[str, Any]]], cuts: list[int], form: Form
) -> None:
    events = [answer(*some, finish=None) for some in parts]
    events[-1]["candidates"][0]["finishReason"] = "STOP"
    data = form(*events)
    stream = translator()
    whole = run(stream, [data])
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    again = run(translator(), pieces)
    assert [event.data for event in again] == [event.data for event in whole]
    assert_all_there([part for some in parts for part in some], whole)


def assert_all_there(parts: list[dict[str, Any]], events: list[StreamEvent]) -> None:
    found = deltas(decoded(events))
    plain = [part for part in parts if "text" in part and not part.get("thought")]
    thoughts = [part["text"] for part in parts if part.get("thought")]
    calls = [tool_call for delta in found for tool_call in delta.get("tool_calls", ())]
    assert "".join(delta.get("content") or "" for delta in found) == "".join(part["text"] for part in plain)
    assert "".join(delta.get("reasoning_content", "") for delta in found) == "".join(thoughts)
    assert [json.loads(tool_call["function"]["arguments"]) for tool_call in calls] == [
        part["functionCall"]["args"] for part in parts if "functionCall" in part
    ]
    details = [detail for delta in found for detail in delta.get("reasoning_details", ())]
    assert [detail["index"] for detail in details] == list(range(len(details)))
    assert len(details) == sum("thoughtSignature" in part for part in parts)
