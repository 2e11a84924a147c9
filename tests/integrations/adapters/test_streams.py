"""Tests that streams give the same as the whole answer, wherever they are cut, and that ends and errors are
detected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from integrations.providers.errors import FailureKind
from tests.fakes.dialects.story import Call, Finish, Story, Streamed
from tests.integrations.adapters.assembled import assembled
from tests.integrations.adapters.subject import Outcome, Subject, pieces, without_created
from tests.integrations.adapters.test_answers import COUNTS, assert_usage, everything
from tests.night import examples

TEXT = "Grüße 👋 aus dem Norden,\nund “bis bald”"
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)


def closing(outcome: Outcome) -> dict[str, Any]:
    assert outcome.error is None, outcome.error
    return outcome.chunks[-1]


def test_stream__text__adds_up_to_the_whole_answer(subject: Subject) -> None:
    story = Story(text=TEXT, pieces=5)
    outcome = subject.streamed(story)
    last = closing(outcome)
    assert assembled(outcome.chunks)["message"]["content"] == TEXT == subject.message(story)["content"]
    assert "".join(event.text for event in outcome.events) == TEXT
    assert [choice["finish_reason"] for choice in last["choices"]] == ["stop"]
    assert last["choices"][0]["delta"] == {}
    assert outcome.translator is not None
    assert outcome.translator.finish_reason == "stop"
    assert outcome.translator.model in (story.model, subject.model)


def test_stream__every_chunk__has_the_fields_of_the_specification(subject: Subject) -> None:
    outcome = subject.streamed(Story(text=TEXT))
    assert len({chunk["id"] for chunk in outcome.chunks}) == 1
    for chunk in outcome.chunks:
        assert chunk["object"] == "chat.completion.chunk"
        assert isinstance(chunk["id"], str)
        assert chunk["id"]
        assert isinstance(chunk["created"], int)
        assert chunk["model"] in ("fake-1", subject.model)
        assert [choice["index"] for choice in chunk["choices"]] == [0]
    assert all(choice["finish_reason"] is None for chunk in outcome.chunks[:-1] for choice in chunk["choices"])
    assert outcome.chunks[0]["choices"][0]["delta"].get("role") == "assistant"


def test_stream__with_everything_in_it__valid_for_the_official_types(subject: Subject) -> None:
    outcome = subject.streamed(everything(subject))
    assert outcome.error is None
    for chunk in outcome.chunks:
        ChatCompletionChunk.model_validate(chunk)


def test_stream__preamble__is_no_output_and_text_is(subject: Subject) -> None:
    """An error behind the preamble can still lead to another attempt, which the gate for the first chunk decides."""
    outcome = subject.streamed(Story(text=TEXT))
    texts = [bool(event.text) for event in outcome.events]
    assert [event.has_output for event in outcome.events] == texts


def test_stream__usage__once_and_in_the_last_chunk(subject: Subject) -> None:
    outcome = subject.streamed(Story(text=TEXT, usage=COUNTS))
    assert [bool(chunk.get("usage")) for chunk in outcome.chunks] == [False] * (len(outcome.chunks) - 1) + [True]
    assert outcome.translator is not None
    assert_usage(subject, outcome.chunks[-1]["usage"], outcome.translator.usage)


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter"])
@pytest.mark.parametrize("text", [TEXT, ""])
def test_stream__finish__in_openais_words(subject: Subject, finish: Finish, text: str) -> None:
    outcome = subject.streamed(Story(text=text, finish=finish))
    assert closing(outcome)["choices"][0]["finish_reason"] == finish
    assert outcome.translator is not None
    assert outcome.translator.finish_reason == finish


def test_stream__calls__indices_count_up_and_fragments_follow_their_start(tooled: Subject) -> None:
    calls = (Call("callAAA01", "get_weather", {"city": "Oslo"}), Call("callBBB02", "get_time", {"zone": "CET"}))
    story = Story(text="Let me see.", calls=calls if tooled.fake.can.parallel_tools else calls[:1], finish="tool_calls")
    outcome = tooled.streamed(story)
    started: list[int] = []
    for chunk in outcome.chunks:
        for fragment in chunk["choices"][0]["delta"].get("tool_calls") or ():
            if fragment.get("id"):
                assert fragment["index"] == len(started)
                started.append(fragment["index"])
            assert fragment["index"] in started
    assert started == list(range(len(story.calls)))
    assert closing(outcome)["choices"][0]["finish_reason"] == "tool_calls"


def test_stream__of_one_byte_each__the_same_chunks(subject: Subject) -> None:
    data = b"".join(subject.fake.stream(Story(text=TEXT)).events)
    whole = subject.translate([data])
    single = subject.translate(data[i : i + 1] for i in range(len(data)))
    assert without_created(single.events) == without_created(whole.events)


@settings(max_examples=examples(5, 15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=TEXTS,
    reasoning=st.one_of(st.just(""), TEXTS),
    arguments=st.one_of(st.none(), st.dictionaries(TEXTS, TEXTS, max_size=2)),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=12),
)
def test_stream__cut_anywhere__the_same_bytes(
    subject: Subject, text: str, reasoning: str, arguments: dict[str, str] | None, cuts: list[int]
) -> None:
    can = subject.fake.can
    call = () if arguments is None or not can.tools else (Call("callAAA01", "get_weather", arguments),)
    story = Story(
        text=text,
        reasoning=reasoning if can.reasoning else "",
        calls=call,
        finish="tool_calls" if call else "stop",
        usage=COUNTS,
    )
    data = b"".join(subject.fake.stream(story).events)
    whole, cut = subject.translate([data]), subject.translate(pieces(data, cuts))
    assert whole.error is None
    assert cut.error is None
    assert without_created(cut.events) == without_created(whole.events)
    assert [(event.has_output, event.text) for event in cut.events] == [
        (event.has_output, event.text) for event in whole.events
    ]
    message = assembled(whole.chunks)["message"]
    assert (message["content"] or "") == text
    for tool_call in message.get("tool_calls", ()):
        assert json.loads(tool_call["function"]["arguments"]) == arguments


def test_stream__ended_in_the_middle__unusable(subject: Subject) -> None:
    events = subject.fake.stream(Story(text=TEXT, pieces=4)).events
    first = next(count for count in range(len(events)) if has_text(subject, events[:count]))
    outcome = subject.translate(events[:first])
    assert outcome.error is not None
    assert outcome.error.kind is FailureKind.UNUSABLE
    assert any(event.has_output for event in outcome.events)


def has_text(subject: Subject, events: tuple[bytes, ...]) -> bool:
    return any(event.has_output for event in subject.translate(events).events)


def test_stream__cut_inside_an_event__unusable(subject: Subject) -> None:
    events = subject.fake.stream(Story(text=TEXT, pieces=4)).events
    first = next(count for count in range(len(events)) if has_text(subject, events[:count]))
    half = events[first][: len(events[first]) // 2]
    outcome = subject.translate([*events[:first], half])
    assert outcome.error is not None
    assert outcome.error.kind is FailureKind.UNUSABLE


@pytest.mark.parametrize("data", [b"", b"<html>oops</html>", b"{}", b"\x00\xff\x00"])
def test_stream__that_is_none__an_error_without_output(subject: Subject, data: bytes) -> None:
    outcome = subject.translate([data] if data else [])
    assert outcome.error is not None
    assert outcome.error.kind is FailureKind.UNUSABLE
    assert not any(event.has_output for event in outcome.events)


def test_stream__malformed_event__unusable_and_what_came_before_kept(subject: Subject) -> None:
    """A brace is replaced by a bracket, which is no JSON in a text protocol and a wrong checksum in a binary one."""
    streamed = subject.fake.stream(Story(text=TEXT, pieces=4))
    first = next(count for count in range(len(streamed.events)) if has_text(subject, streamed.events[:count]))
    broken = streamed.events[first].replace(b"{", b"(", 1)
    assert broken != streamed.events[first]
    good = subject.translate(streamed.events[:first]).events
    for events in (
        [*streamed.events[:first], broken, *streamed.events[first + 1 :]],
        [b"".join([*streamed.events[:first], broken, *streamed.events[first + 1 :]])],
    ):
        outcome = subject.translate(events)
        assert outcome.error is not None
        assert outcome.error.kind is FailureKind.UNUSABLE
        assert without_created(outcome.events) == without_created(good)


def test_stream__error_before_output__raised_without_output(reporting: Subject) -> None:
    outcome = reporting.streamed(reporting.fake.stream_failure(Story(), "the model is overloaded"))
    assert outcome.error is not None
    assert "the model is overloaded" in outcome.error.message
    assert outcome.error.kind is not FailureKind.UNUSABLE
    assert not any(event.has_output for event in outcome.events)


@pytest.mark.parametrize("joined", [False, True])
def test_stream__error_after_output__raised_behind_all_of_it(reporting: Subject, joined: bool) -> None:
    failure = reporting.fake.stream_failure(Story(text=TEXT), "the model is overloaded")
    streamed = Streamed(failure.headers, (b"".join(failure.events),)) if joined else failure
    outcome = reporting.streamed(streamed)
    assert outcome.error is not None
    assert "the model is overloaded" in outcome.error.message
    assert "".join(event.text for event in outcome.events) == TEXT
    assert not [chunk for chunk in outcome.chunks if chunk.get("usage")]
    assert outcome.translator is not None
    assert outcome.error.usage == outcome.translator.usage


@settings(max_examples=examples(10, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(end=st.integers(0, 1 << 16))
def test_stream__ended_anywhere__never_taken_for_a_short_answer(subject: Subject, end: int) -> None:
    data = b"".join(subject.fake.stream(Story(text=TEXT, pieces=6)).events)
    outcome = subject.translate([data[: end % len(data)]])
    if outcome.error is None:
        assert "".join(event.text for event in outcome.events) == TEXT
        assert outcome.chunks[-1]["choices"][0]["finish_reason"] == "stop"
    else:
        assert outcome.error.kind is FailureKind.UNUSABLE


def test_stream__broken_after_its_usage__the_error_holds_the_usage_that_is_billed(subject: Subject) -> None:
    """The stream sends every event of the story but its last, and then the connection breaks."""
    events = subject.fake.stream(Story(text=TEXT, usage=COUNTS)).events
    for count in range(1, len(events)):
        outcome = subject.translate(events[:count])
        assert outcome.translator is not None
        if outcome.error is not None:
            assert outcome.error.usage == outcome.translator.usage
