"""Tests Cohere's streams, cut anywhere, and the errors inside them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.cohere import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.integrations.adapters.assembled import assembled
from tests.integrations.cohere_answers import (
    CITATION,
    END,
    START,
    USAGE,
    event,
    sse,
    streamed,
    streamed_choice,
    text_delta,
)
from tests.integrations.exchanges import decoded, run, translator

NOTE = {
    "type": "url_citation",
    "url_citation": {"url": "https://x/facts", "title": "Facts", "start_index": 6, "end_index": 10},
}


def thinking_delta(value: str, index: int = 0) -> dict[str, Any]:
    return event("content-delta", {"content": {"thinking": value}}, index=index)


def test_stream__without_an_id__one_of_its_own_in_every_chunk() -> None:
    ids = [{one["id"] for one in decoded(streamed(text_delta("a"), text_delta("b"), END))} for _ in range(2)]
    assert [len(found) for found in ids] == [1, 1]
    assert ids[0] != ids[1]


def test_stream__all_of_it__in_order_with_usage_last() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    events = streamed(
        START,
        event("content-start", {"content": {"type": "thinking", "thinking": ""}}, index=0),
        thinking_delta("h"),
        thinking_delta("m"),
        event("content-end", index=0),
        event("content-start", {"content": {"type": "text", "text": "He"}}, index=1),
        text_delta("llo", 1),
        event("content-end", index=1),
        event("tool-plan-delta", {"tool_plan": "I will."}),
        event("tool-call-start", {"tool_calls": call}, index=0),
        event("tool-call-delta", {"tool_calls": {"function": {"arguments": '{"a":'}}}, index=0),
        event("tool-call-delta", {"tool_calls": {"function": {"arguments": "1}"}}}, index=0),
        event("tool-call-end", index=0),
        {"type": "debug", "prompt": "…"},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": USAGE}},
    )
    chunks = decoded(events)
    assert [one["choices"][0]["delta"] for one in chunks] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "h"},
        {"reasoning_content": "m"},
        {"content": "He"},
        {"content": "llo"},
        {"reasoning_content": "\nI will."},
        {"tool_calls": [{"index": 0, **call}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        {"provider_specific_fields": {"tool_plan": "I will."}},
        {},
    ]
    assert chunks[-1]["usage"]["total_tokens"] == 24
    assert [bool(one.get("usage")) for one in chunks] == [False] * 10 + [True]
    assert [one.has_output for one in events] == [False, *([True] * 9), False]
    assert {one["id"] for one in chunks} == {"i1"}


@pytest.mark.parametrize("ended", [True, False])
def test_stream__calls_without_arguments__objects_and_indices_of_our_own(ended: bool) -> None:
    calls = [
        event("tool-call-start", {"tool_calls": {"id": f"c{i}", "function": {"name": "f"}}}, index=i + 3)
        for i in (0, 1)
    ]
    ends = [event("tool-call-end", index=i + 3) for i in (0, 1)] if ended else []
    choice = streamed_choice(START, *calls, *ends, END)
    assert [(call["id"], call["function"]["arguments"]) for call in choice["message"]["tool_calls"]] == [
        ("c0", "{}"),
        ("c1", "{}"),
    ]
    assert choice["finish_reason"] == "tool_calls"


def test_stream__calls_without_ids_or_indices__distinct() -> None:
    start = event("tool-call-start", {"tool_calls": {"function": {"name": "f"}}})
    fragment = event("tool-call-delta", {"tool_calls": {"function": {"arguments": "{}"}}})
    calls = streamed_choice(START, start, fragment, start, fragment, END)["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("call_0", "{}"), ("call_1", "{}")]


def test_stream__citation__annotation_at_its_place() -> None:
    events = decoded(
        streamed(
            START,
            thinking_delta("x"),
            text_delta("About ", 1),
            text_delta("Ruby", 1),
            event("citation-start", {"citations": CITATION}, index=0),
            event("citation-end", index=0),
            END,
        )
    )
    (delta,) = [one["choices"][0]["delta"] for one in events if "citations" in one["choices"][0]["delta"]]
    assert delta == {"citations": [{**CITATION, "index": 0}], "annotations": [{**NOTE, "index": 0}]}


def test_stream__two_blocks_of_text__citation_of_the_second_moved() -> None:
    events = decoded(
        streamed(
            START,
            text_delta("One. "),
            text_delta("About Ruby", 1),
            event("citation-start", {"citations": CITATION}),
            END,
        )
    )
    delta = events[3]["choices"][0]["delta"]
    start, end = (delta["annotations"][0]["url_citation"][name] for name in ("start_index", "end_index"))
    assert "One. About Ruby"[start:end] == "Ruby"


def test_stream__without_a_start__a_role_first() -> None:
    chunks = decoded(streamed(text_delta("a"), END))
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[0]["id"]


@pytest.mark.parametrize(
    "events",
    [
        [START, {"type": "from-the-future", "delta": "x"}, text_delta("a"), END],
        [START, event("content-delta", {"content": None}), text_delta("a"), END],
        [
            START,
            event("tool-call-delta", {"tool_calls": {"function": {"arguments": "{}"}}}, index=9),
            text_delta("a"),
            END,
        ],
        [START, event("tool-call-start", {"tool_calls": []}), text_delta("a"), END],
        [START, event("citation-start", {"citations": []}), text_delta("a"), END],
        [START, START, text_delta("a"), END],
        [START, text_delta("a"), END, text_delta("late")],
        [START, {"type": "tool-plan-delta"}, text_delta("a"), END],
    ],
    ids=str,
)
def test_stream__odd_but_harmless_events__skipped(events: list[dict[str, Any]]) -> None:
    choice = streamed_choice(*events)
    assert (choice["message"]["content"], choice["finish_reason"]) == ("a", "stop")
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ("{", FailureKind.UNUSABLE),
        ("[1]", FailureKind.UNUSABLE),
        ('{"no": "type"}', FailureKind.UNUSABLE),
        ('{"type": "content-delta", "delta": 3}', FailureKind.UNUSABLE),
        ('{"id": "x", "message": "too many tokens"}', FailureKind.CONTEXT_LENGTH),
        ('{"type": "error", "message": "too many tokens"}', FailureKind.CONTEXT_LENGTH),
        ('{"type": "error", "status_code": 429, "message": "slow down"}', FailureKind.RATE_LIMITED),
    ],
)
@pytest.mark.parametrize("joined", [True, False])
def test_stream__bad_event__raised_behind_what_came_before(bad: str, kind: FailureKind, joined: bool) -> None:
    data = (
        [sse(START, text_delta("a"), bad, text_delta("b"))]
        if joined
        else [sse(one, done=False) for one in (START, text_delta("a"), bad)]
    )
    stream, events = translator("cohere"), []
    with pytest.raises(ProviderError) as caught:
        for piece in data:
            events += stream.feed(piece)
        stream.closing()
    assert [one.text for one in events] == ["", "a"]
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", FailureKind.UNUSABLE),
        (b'{"id": "x", "message": "no"}', FailureKind.UNAVAILABLE),
        (b'{"id": "x"}', FailureKind.UNUSABLE),
        (b"<html>", FailureKind.UNUSABLE),
        (sse(START, text_delta("a"), done=False), FailureKind.UNUSABLE),
        (sse(START, text_delta("a")), FailureKind.UNUSABLE),
        (sse(START, text_delta("a"), END, done=False)[:-12], FailureKind.UNUSABLE),
    ],
)
def test_stream__no_end__a_failure(data: bytes, kind: FailureKind) -> None:
    stream = translator("cohere")
    stream.feed(data)
    with pytest.raises(ProviderError) as caught:
        stream.closing()
    assert caught.value.kind is kind


def test_stream__end_without_its_blank_line__an_end() -> None:
    events = run(translator("cohere"), [sse(START, text_delta("a"), END, done=False)[:-2]])
    assert decoded(events)[-1]["usage"]["prompt_tokens"] == 20


def test_stream__usage_missing__callers_estimate_in_the_last_chunk() -> None:
    stream = translator("cohere")
    stream.feed(sse(START, text_delta("a"), {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}))
    assert stream.usage is None
    stream.usage = Usage(3, 1)
    assert decoded(stream.closing())[-1]["usage"]["total_tokens"] == 4


EVENTS = st.one_of(
    st.builds(text_delta, st.text(max_size=8), st.integers(0, 2)),
    st.builds(thinking_delta, st.text(max_size=8), st.integers(0, 2)),
    st.builds(lambda plan: event("tool-plan-delta", {"tool_plan": plan}), st.text(max_size=8)),
    st.just(event("content-end", index=0)),
)


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    borders = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(borders)]


@given(
    st.lists(EVENTS, max_size=8),
    st.lists(st.lists(st.text(max_size=6), max_size=3), max_size=3),
    st.lists(st.integers(0, 4000), max_size=8),
)
def test_stream__any_story_cut_anywhere__nothing_lost(
    events: list[dict[str, Any]], calls: list[list[str]], cuts: list[int]
) -> None:
    for index, fragments in enumerate(calls):
        events.append(
            event("tool-call-start", {"tool_calls": {"id": f"c{index}", "function": {"name": "f"}}}, index=index)
        )
        events += [
            event("tool-call-delta", {"tool_calls": {"function": {"arguments": one}}}, index=index) for one in fragments
        ]
        events.append(event("tool-call-end", index=index))
    data = sse(START, *events, END)
    translated = run(translator("cohere"), pieces(data, cuts))
    whole = run(translator("cohere"), [data])
    assert [{**one, "created": 0} for one in decoded(translated)] == [{**one, "created": 0} for one in decoded(whole)]
    answer = assembled(decoded(translated))
    contents = [one["delta"]["message"].get("content") or {} for one in events if "delta" in one]
    assert (answer["message"]["content"] or "") == "".join(one.get("text", "") for one in contents)
    assert [call["function"]["arguments"] for call in answer["message"].get("tool_calls", [])] == [
        "".join(fragments) or "{}" for fragments in calls
    ]
    assert answer["finish_reason"] == ("tool_calls" if calls else "stop")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.REJECTED),
        (401, FailureKind.CREDENTIALS),
        (402, FailureKind.QUOTA),
        (404, FailureKind.NOT_FOUND),
        (422, FailureKind.REJECTED),
        (429, FailureKind.RATE_LIMITED),
        (498, FailureKind.CONTENT_FILTER),
        (499, FailureKind.UNAVAILABLE),
        (500, FailureKind.UNAVAILABLE),
        (501, FailureKind.UNAVAILABLE),
        (504, FailureKind.UNAVAILABLE),
    ],
)
def test_failure__coheres_statuses__kind_and_message(status: int, kind: FailureKind) -> None:
    error = ADAPTER.classify_failure(status, {}, b'{"id": "x", "message": "not like this"}')
    assert (error.kind, error.message, error.status, error.provider) == (kind, "not like this", status, "cohere")
