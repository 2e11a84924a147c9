"""Tests Cohere's whole answers, streams and failures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, get_args

import pytest
from cohere.types.chat_finish_reason import ChatFinishReason
from cohere.types.finish_reason import FinishReason
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.base import ParsedResponse, StreamEvent
from integrations.providers.cohere import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.integrations.adapters.assembled import as_the_sdk_does, assembled
from tests.integrations.exchanges import chat_request, credentials, decoded, run, translator

REQUEST = chat_request("command-a-03-2025")
USAGE = {
    "billed_units": {"input_tokens": 5, "output_tokens": 3},
    "tokens": {"input_tokens": 20, "output_tokens": 4, "reasoning_tokens": 1},
    "cached_tokens": 16,
}
READ = Usage(20, 4, 16, 0, 1, billed_prompt_tokens=5, billed_completion_tokens=3)
CITATION = {
    "start": 6,
    "end": 10,
    "text": "Ruby",
    "sources": [{"type": "document", "id": "d", "document": {"title": "Facts", "url": "https://x/facts"}}],
    "type": "TEXT_CONTENT",
    "content_index": 1,
}
NOTE = {
    "type": "url_citation",
    "url_citation": {"url": "https://x/facts", "title": "Facts", "start_index": 6, "end_index": 10},
}


def parsed(finish: str = "COMPLETE", usage: Any = USAGE, **message: Any) -> ParsedResponse:
    body = {"id": "i1", "message": {"role": "assistant", **message}, "finish_reason": finish, "usage": usage}
    return ADAPTER.parse_response(REQUEST, json.dumps(body).encode())


def choice_of(answer: ParsedResponse) -> dict[str, Any]:
    (choice,) = json.loads(answer.body)["choices"]
    found: dict[str, Any] = choice
    return found


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def event(kind: str, message: Any = None, **fields: Any) -> dict[str, Any]:
    delta = {} if message is None else {"delta": {"message": message}}
    return {"type": kind, **delta, **fields}


START = event("message-start", {"role": "assistant", "content": [], "tool_calls": [], "citations": []}, id="i1")
END = {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": USAGE}}


def text_delta(value: str, index: int = 0) -> dict[str, Any]:
    return event("content-delta", {"content": {"text": value}}, index=index)


def thinking_delta(value: str, index: int = 0) -> dict[str, Any]:
    return event("content-delta", {"content": {"thinking": value}}, index=index)


def sse(*events: dict[str, Any] | str, done: bool = True) -> bytes:
    blocks = [
        f"data: {one}\n\n"
        if isinstance(one, str)
        else f"event: {one.get('type')}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n"
        for one in events
    ]
    return "".join([*blocks, *(["data: [DONE]\n\n"] if done else [])]).encode()


def streamed(*events: dict[str, Any] | str) -> list[StreamEvent]:
    return run(translator("cohere"), [sse(*events)])


def streamed_choice(*events: dict[str, Any] | str) -> dict[str, Any]:
    return assembled(decoded(streamed(*events)))


@pytest.mark.parametrize(
    ("content", "expected", "reasoning"),
    [
        ([text("Hello")], "Hello", None),
        ([text("one "), text("two")], "one two", None),
        ([{"type": "thinking", "thinking": "hm"}, text("a")], "a", "hm"),
        ([{"type": "thinking", "thinking": "h"}, {"type": "thinking", "thinking": "m"}], "", "h\nm"),
        ([], "", None),
        (None, "", None),
        ([{"type": "from_the_future", "x": 1}, text("a")], "a", None),
    ],
    ids=str,
)
def test_answer__contents__text_and_reasoning(content: Any, expected: str, reasoning: str | None) -> None:
    answer = parsed(content=content)
    message = choice_of(answer)["message"]
    assert (message["content"], message.get("reasoning_content")) == (expected, reasoning)
    assert json.loads(answer.body)["id"] == "i1"
    assert answer.usage == READ


def test_answer__calls_with_a_plan__plan_is_reasoning() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"function": {"name": "g"}},
    ]
    choice = choice_of(parsed("TOOL_CALL", tool_calls=calls, tool_plan="I will call f."))
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I will call f.",
        "provider_specific_fields": {"tool_plan": "I will call f."},
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
            {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert choice["finish_reason"] == "tool_calls"


# Every finish reason of the SDK, in both versions of the API, is mapped to the outcome of an answer with text.
REASONS: dict[str, str | FailureKind] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "content_filter",
    "TOOL_CALL": FailureKind.UNUSABLE,  # The reason announces a call, and the answer has none.
    "ERROR": FailureKind.UNAVAILABLE,
    "USER_CANCEL": FailureKind.UNAVAILABLE,
    "TIMEOUT": FailureKind.TIMEOUT,
}
UNKNOWN: list[tuple[str, str | FailureKind]] = [
    ("FROM_THE_FUTURE", FailureKind.UNUSABLE),
    ("", FailureKind.UNUSABLE),
]


def test_reasons__of_the_sdk__each_has_its_outcome() -> None:
    known = {word for union in (ChatFinishReason, FinishReason) for word in get_args(get_args(union)[0])}
    assert known == set(REASONS)


@pytest.mark.parametrize(("reason", "outcome"), [*REASONS.items(), ("FROM_THE_FUTURE", "stop"), ("", "stop")])
def test_reason__coheres_behind_a_text__openais_or_a_failure(reason: str, outcome: str | FailureKind) -> None:
    assert outcome_of(reason, "a") == (outcome, outcome)


@pytest.mark.parametrize(("reason", "outcome"), [*REASONS.items(), *UNKNOWN])
def test_reason__coheres_of_an_empty_answer__openais_or_a_failure(reason: str, outcome: str | FailureKind) -> None:
    assert outcome_of(reason, "") == (outcome, outcome)


def outcome_of(reason: str, content: str) -> tuple[str | FailureKind, str | FailureKind]:
    """Returns the outcome, whole and streamed: the finish reason, or the kind of the failure, which is billed."""
    end = {"type": "message-end", "delta": {"finish_reason": reason, "usage": USAGE}}
    readers: list[Callable[[], dict[str, Any]]] = [
        lambda: choice_of(parsed(reason, content=[text(content)])),
        lambda: streamed_choice(START, text_delta(content), end),
    ]
    found: list[str | FailureKind] = []
    for read in readers:
        try:
            found.append(read()["finish_reason"])
        except ProviderError as error:
            assert error.usage == READ
            found.append(error.kind)
    whole, stream = found
    return whole, stream


def test_reason__complete_with_calls__tool_calls() -> None:
    calls = [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]
    assert choice_of(parsed("COMPLETE", tool_calls=calls))["finish_reason"] == "tool_calls"
    assert choice_of(parsed("MAX_TOKENS", tool_calls=calls))["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"tokens": {"input_tokens": 12.0, "output_tokens": 3.0}}, Usage(12, 3)),
        (
            {"billed_units": {"input_tokens": 12, "output_tokens": 3}},
            Usage(12, 3, billed_prompt_tokens=12, billed_completion_tokens=3),
        ),
        (
            {"tokens": {"input_tokens": 12, "output_tokens": -3}, "cached_tokens": 99},
            Usage(12, 0, cache_read_tokens=12),
        ),
        ({"tokens": {"input_tokens": "12", "output_tokens": True}}, Usage(0, 0)),
    ],
    ids=str,
)
def test_usage__odd_counts__never_wrong(usage: Any, expected: Usage | None) -> None:
    assert parsed(usage=usage, content=[text("a")]).usage == expected


def test_specific__citations_and_plan__whole_and_streamed_the_same() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    whole = choice_of(parsed("TOOL_CALL", tool_calls=calls, tool_plan="I will.", citations=[CITATION, CITATION]))
    fields = whole["message"]["provider_specific_fields"]
    assert fields == {"tool_plan": "I will.", "citations": [CITATION, CITATION]}
    events = (
        event("tool-plan-delta", {"tool_plan": "I "}),
        event("tool-plan-delta", {"tool_plan": "will."}),
        event("tool-call-start", {"tool_calls": calls[0]}, index=0),
        *(event("citation-start", {"citations": CITATION}, index=i) for i in (0, 1)),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    )
    message = as_the_sdk_does(decoded(streamed(START, *events)))
    streamed_fields = message["provider_specific_fields"]
    assert [{**one, "index": 0} for one in streamed_fields.pop("citations")] == [{**CITATION, "index": 0}] * 2
    assert streamed_fields == {"tool_plan": "I will."}


def test_specific__unknown_reason__kept_beside_the_ordinary_one() -> None:
    kept = {"finish_reason": "FROM_THE_FUTURE"}
    assert choice_of(parsed("FROM_THE_FUTURE", content=[text("a")]))["message"]["provider_specific_fields"] == kept
    end = {"type": "message-end", "delta": {"finish_reason": "FROM_THE_FUTURE"}}
    assert as_the_sdk_does(decoded(streamed(START, text_delta("a"), end)))["provider_specific_fields"] == kept


def test_stream__without_an_id__one_of_its_own_in_every_chunk() -> None:
    ids = [{one["id"] for one in decoded(streamed(text_delta("a"), text_delta("b"), END))} for _ in range(2)]
    assert [len(found) for found in ids] == [1, 1]
    assert ids[0] != ids[1]


def test_answer__without_usage__zeros() -> None:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert json.loads(parsed(usage=None, content=[text("a")]).body)["usage"] == zeros


def test_citations__of_a_second_block__positions_in_the_whole_text() -> None:
    content = [text("One. "), text("About Ruby"), {"type": "thinking", "thinking": "x"}]
    message = choice_of(parsed(content=content, citations=[{**CITATION}]))["message"]
    (note,) = message["annotations"]
    start, end = note["url_citation"]["start_index"], note["url_citation"]["end_index"]
    assert message["content"][start:end] == "Ruby"
    assert message["citations"] == [CITATION]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"sources": [{"type": "tool", "id": "https://x/a", "tool_output": {"text": "t"}}]}, 1),
        ({"sources": [{"type": "tool", "id": "call_1:0", "tool_output": {"text": "t"}}]}, 0),
        ({"sources": [{"type": "tool", "tool_output": {"url": "https://x"}}, {"type": "tool", "id": "http://y"}]}, 2),
        ({"type": "PLAN"}, 0),
        ({"type": "THINKING_CONTENT"}, 0),
        ({"start": None}, 0),
        ({"sources": None}, 0),
    ],
    ids=str,
)
def test_citations__sources__annotated_when_they_have_an_address(changes: dict[str, Any], count: int) -> None:
    message = choice_of(parsed(content=[text("About Ruby")], citations=[{**CITATION, **changes}]))["message"]
    assert len(message.get("annotations", [])) == count
    assert len(message["citations"]) == 1


def test_logprobs__pieces__a_token_each() -> None:
    items = [{"text": "Hi", "token_ids": [1, 2], "logprobs": [-0.5, -0.25]}, {"token_ids": [3]}]
    body = {"id": "i", "message": {"content": [text("Hi")]}, "finish_reason": "COMPLETE", "logprobs": items}
    choice = choice_of(ADAPTER.parse_response(REQUEST, json.dumps(body).encode()))
    assert choice["logprobs"] == {
        "content": [{"token": "Hi", "logprob": -0.75, "bytes": [72, 105], "top_logprobs": []}]
    }
    delta = {**text_delta("Hi"), "logprobs": items[0]}
    chunk = decoded(streamed(START, delta, END))[1]
    assert chunk["choices"][0]["logprobs"] == choice["logprobs"]
    assert chunk["choices"][0]["delta"] == {"content": "Hi"}


@pytest.mark.parametrize(("reason", "kind"), [("ERROR", FailureKind.UNAVAILABLE), ("TIMEOUT", FailureKind.TIMEOUT)])
def test_answer__broken_off__a_failure_that_is_billed(reason: str, kind: FailureKind) -> None:
    with pytest.raises(ProviderError) as caught:
        parsed(reason, content=[text("half")])
    assert (caught.value.kind, caught.value.usage) == (kind, READ)
    stream = translator("cohere")
    end = {"type": "message-end", "delta": {"finish_reason": reason, "error": "gone", "usage": USAGE}}
    assert [one.text for one in stream.feed(sse(START, text_delta("half"), end))] == ["", "half"]
    with pytest.raises(ProviderError, match="gone") as streamed_failure:
        stream.closing()
    assert (streamed_failure.value.kind, streamed_failure.value.usage) == (kind, READ)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"message": null}', b'{"message": 3}', b"<html>"])
def test_answer__none__unusable(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        ADAPTER.parse_response(REQUEST, body)
    assert caught.value.kind is FailureKind.UNUSABLE


def test_answer__an_error_under_a_200__its_words() -> None:
    with pytest.raises(ProviderError, match="no such model"):
        ADAPTER.parse_response(REQUEST, b'{"id": "x", "message": "no such model"}')


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
    made = streamed_choice(START, *calls, *ends, END)
    assert [(call["id"], call["function"]["arguments"]) for call in made["message"]["tool_calls"]] == [
        ("c0", "{}"),
        ("c1", "{}"),
    ]
    assert made["finish_reason"] == "tool_calls"


def test_stream__calls_without_ids_or_indices__distinct() -> None:
    start = event("tool-call-start", {"tool_calls": {"function": {"name": "f"}}})
    fragment = event("tool-call-delta", {"tool_calls": {"function": {"arguments": "{}"}}})
    made = streamed_choice(START, start, fragment, start, fragment, END)["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in made] == [("call_0", "{}"), ("call_1", "{}")]


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
    made = streamed_choice(*events)
    assert (made["message"]["content"], made["finish_reason"]) == ("a", "stop")
    assert "tool_calls" not in made["message"]


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
    made = run(translator("cohere"), pieces(data, cuts))
    whole = run(translator("cohere"), [data])
    assert [{**one, "created": 0} for one in decoded(made)] == [{**one, "created": 0} for one in decoded(whole)]
    answer = assembled(decoded(made))
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


def test_failure__key_in_the_message__redacted() -> None:
    access = credentials("cohere", key="VeryOwnKeyOfNoKnownForm")
    ADAPTER.build_request(REQUEST, access)
    error = ADAPTER.classify_failure(401, {}, b'{"message": "invalid api token VeryOwnKeyOfNoKnownForm"}')
    assert "VeryOwnKey" not in error.message
