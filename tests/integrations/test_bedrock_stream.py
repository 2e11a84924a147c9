"""Tests streams of ConverseStream that no recording holds, and the exceptions inside them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.base import StreamEvent
from integrations.providers.bedrock import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.fakes.dialects.bedrock import FAKE, frame
from tests.fakes.dialects.story import Call, Story
from tests.integrations.bedrock_answers import (
    COUNTS,
    METADATA,
    START,
    STOP,
    choice_of,
    delta,
    deltas,
    ended,
    run,
    started,
)
from tests.integrations.bedrock_exchanges import bedrock_request, event, exception


def test_stream__call_without_input__an_empty_object() -> None:
    start = started(0, toolUse={"toolUseId": "t1", "name": "look"})
    for end in ((ended(0),), ()):
        found = deltas(START, start, delta(toolUse={"input": ""}), *end, event("messageStop", stopReason="tool_use"))
        calls = [call for item in found for call in item.get("tool_calls", ())]
        assert "".join(call["function"]["arguments"] for call in calls) == "{}"


def test_stream__blocks_side_by_side__each_fragment_at_its_call() -> None:
    found = deltas(
        START,
        started(1, toolUse={"toolUseId": "t1", "name": "a"}),
        started(2, toolUse={"toolUseId": "t1", "name": "b"}),
        delta(2, toolUse={"input": '{"b"'}),
        delta(1, toolUse={"input": '{"a": 1}'}),
        delta(2, toolUse={"input": ": 2}"}),
        delta(7, toolUse={"input": "to nobody"}),
        event("messageStop", stopReason="tool_use"),
    )
    texts: dict[int, str] = {}
    for call in (call for item in found for call in item.get("tool_calls", ())):
        texts[call["index"]] = texts.get(call["index"], "") + call["function"]["arguments"]
    assert texts == {0: '{"a": 1}', 1: '{"b": 2}'}
    assert [call["id"] for item in found for call in item.get("tool_calls", ()) if "id" in call] == ["t1", "call_1"]


def test_stream__citations__numbered_and_placed() -> None:
    def cited(index: int, url: str) -> bytes:
        return delta(index, citation={"location": {"web": {"url": url}}})

    found = deltas(
        START, delta(text="one "), delta(1, text="two"), cited(1, "https://b.test"), cited(2, "https://c.test"), STOP
    )
    notes = [note for item in found for note in item.get("annotations", ())]
    assert [note["index"] for note in notes] == [0, 1]
    places = [(note["url_citation"]["start_index"], note["url_citation"]["end_index"]) for note in notes]
    assert places == [(4, 7), (4, 7)]


def test_stream__without_usage__ends_all_the_same() -> None:
    stream = ADAPTER.stream(bedrock_request(stream=True))
    stream.feed(START + delta(text="x") + STOP)
    assert stream.usage is None
    stream.usage = Usage(3, 1)
    assert json.loads(stream.closing()[-1].data)["usage"]["total_tokens"] == 4


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("throttlingException", FailureKind.RATE_LIMITED, 429),
        ("modelStreamErrorException", FailureKind.UNAVAILABLE, 424),
        ("internalServerException", FailureKind.UNAVAILABLE, 500),
        ("serviceUnavailableException", FailureKind.UNAVAILABLE, 503),
        ("validationException", FailureKind.REJECTED, 400),
        ("modelTimeoutException", FailureKind.TIMEOUT, 408),
        ("exceptionOfTomorrow", FailureKind.UNAVAILABLE, None),
    ],
)
@pytest.mark.parametrize("before", [(), (START, delta(text="x"))])
def test_stream__exception__its_kind_behind_all_output(
    name: str, kind: FailureKind, status: int | None, before: tuple[bytes, ...]
) -> None:
    stream = ADAPTER.stream(bedrock_request(stream=True))
    events: list[StreamEvent] = []
    with pytest.raises(ProviderError) as caught:
        events += stream.feed(b"".join([*before, exception(name, "account 123456789012 is busy")]))
        stream.closing()
    assert (caught.value.kind, caught.value.status, caught.value.provider) == (kind, status, "bedrock")
    assert caught.value.message == "account [redacted] is busy"
    assert "".join(item.text for item in events) == ("x" if before else "")
    with pytest.raises(ProviderError):
        stream.feed(b"")


def test_stream__exception_behind_the_usage__is_billed() -> None:
    stream = ADAPTER.stream(bedrock_request(stream=True))
    stream.feed(START + delta(text="x") + METADATA)
    with pytest.raises(ProviderError) as caught:
        stream.feed(exception("modelStreamErrorException", "broken"))
    assert caught.value.usage == COUNTS


def test_stream__error_frame_without_a_payload__read_from_its_headers() -> None:
    headers = {":message-type": "error", ":error-code": "InternalServerException", ":error-message": "it broke"}
    with pytest.raises(ProviderError, match="it broke") as caught:
        run(START, frame(headers, {}))
    assert caught.value.kind is FailureKind.UNAVAILABLE


@pytest.mark.parametrize(
    "bad",
    [
        delta(text="y")[:-1] + b"\x00",
        b"\x00\x00\x00\x10" + delta(text="y")[4:],
        frame({":message-type": "event", ":event-type": "contentBlockDelta"}, {"delta": "no object"}),
        b"data: {}\n\ndata: [DONE]\n\n",
        b'{"message": "not a stream at all"}',
    ],
)
def test_stream__broken_frame__unusable_and_what_came_before_kept(bad: bytes) -> None:
    for pieces in ((START + delta(text="x") + bad,), (START + delta(text="x"), bad)):
        stream = ADAPTER.stream(bedrock_request(stream=True))
        text = ""
        with pytest.raises(ProviderError) as caught:
            for piece in pieces:
                text += "".join(item.text for item in stream.feed(piece))
            stream.closing()
        assert (caught.value.kind, text) == (FailureKind.UNUSABLE, "x")


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
STORIES = st.builds(
    Story,
    text=TEXT,
    reasoning=TEXT,
    signature=st.sampled_from(["", "c2ln"]),
    calls=st.lists(
        st.builds(Call, st.uuids().map(str), st.just("look"), st.dictionaries(TEXT, TEXT, max_size=3)), max_size=3
    ).map(tuple),
    finish=st.sampled_from(["stop", "length", "content_filter"]),
    pieces=st.integers(1, 6),
)


@settings(max_examples=60, deadline=None)
@given(story=STORIES, cuts=st.lists(st.integers(0, 4000), max_size=10))
def test_stream__any_story_cut_anywhere__adds_up_to_the_whole_answer(story: Story, cuts: list[int]) -> None:
    body = b"".join(FAKE.stream(story).events)
    places = sorted({0, len(body), *(cut % len(body) for cut in cuts)})
    once, chunks = run(body), run(*(body[a:b] for a, b in pairwise(places)))
    assert [{**chunk, "created": 0} for chunk in chunks] == [{**chunk, "created": 0} for chunk in once]
    choice = choice_of(FAKE.whole(story).body)
    message = choice["message"]
    chunk_deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert joined(chunk_deltas, "content") == (message["content"] or "") == story.text
    assert joined(chunk_deltas, "reasoning_content") == message.get("reasoning_content", "") == story.reasoning
    assert [d for item in chunk_deltas for d in item.get("reasoning_details", ())] == message.get(
        "reasoning_details", []
    )
    calls = message.get("tool_calls", [])
    assert [call["id"] for item in chunk_deltas for call in item.get("tool_calls", ()) if "id" in call] == [
        call["id"] for call in calls
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def joined(deltas_of_stream: Iterable[dict[str, Any]], name: str) -> str:
    return "".join(item.get(name, "") for item in deltas_of_stream)
