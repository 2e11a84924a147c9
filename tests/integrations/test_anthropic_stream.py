"""Tests the translation of streams of the Messages API to chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import StreamEvent
from integrations.providers.usage import Usage
from tests.fakes.dialects.anthropic import FAKE
from tests.fakes.dialects.story import Call, Story
from tests.integrations.adapters.assembled import assembled
from tests.integrations.anthropic_events import END, Json, block, event, head, text, translator
from tests.integrations.exchanges import chat_request, decoded, run


def tail(**delta: Any) -> bytes:
    return event("message_delta", delta={**END, **delta}, usage={"output_tokens": 4}) + event("message_stop")


def chunks_of(*pieces: bytes) -> list[Json]:
    return decoded(run(translator(), pieces))


def deltas_of(*pieces: bytes) -> list[Json]:
    return [chunk["choices"][0]["delta"] for chunk in chunks_of(*pieces)]


def without_created(events: Iterable[StreamEvent]) -> list[Json]:
    """Returns the chunks without the time, since two runs may fall into different seconds."""
    return [{name: value for name, value in chunk.items() if name != "created"} for chunk in decoded(events)]


def test_stream__text__role_then_text_then_the_end_with_usage() -> None:
    stream = translator()
    events = run(stream, [head(), event("ping"), text(0, "Grüße", " 👋"), tail()])
    assert [(chunk["choices"][0]["delta"], chunk["choices"][0]["finish_reason"]) for chunk in decoded(events)] == [
        ({"role": "assistant", "content": ""}, None),
        ({"content": "Grüße"}, None),
        ({"content": " 👋"}, None),
        ({}, "stop"),
    ]
    assert [(event.has_output, event.text) for event in events] == [
        (False, ""),
        (True, "Grüße"),
        (True, " 👋"),
        (False, ""),
    ]
    assert {(chunk["id"], chunk["model"], chunk["object"]) for chunk in decoded(events)} == {
        ("msg_1", "claude-x", "chat.completion.chunk")
    }
    assert decoded(events)[-1]["usage"] == {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    assert (stream.usage, stream.model, stream.finish_reason) == (Usage(9, 4), "claude-x", "stop")


def test_stream__calls__counted_from_zero_beside_the_vendors_own() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    deltas = deltas_of(
        head(),
        block(0, search, {"type": "input_json_delta", "partial_json": '{"query": "x"}'}),
        block(1, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "x"}]}),
        block(
            2,
            {"type": "tool_use", "id": "toolu_1", "name": "ping", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"n"'},
            {"type": "input_json_delta", "partial_json": ": 1}"},
        ),
        block(3, {"type": "tool_use", "id": "toolu_2", "name": "pong", "input": {}}),
        block(4, {"type": "tool_use", "id": "toolu_3", "name": "pang", "input": {"m": 2}}),
        tail(stop_reason="tool_use"),
    )
    assert [delta for delta in deltas[1:-1] if "tool_calls" in delta] == [
        {
            "tool_calls": [
                {"index": 0, "id": "toolu_1", "type": "function", "function": {"name": "ping", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"n"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
        {
            "tool_calls": [
                {"index": 1, "id": "toolu_2", "type": "function", "function": {"name": "pong", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {
            "tool_calls": [
                {"index": 2, "id": "toolu_3", "type": "function", "function": {"name": "pang", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 2, "function": {"arguments": '{"m": 2}'}}]},
    ]


def test_stream__reasoning__text_while_it_comes_and_whole_entries_at_each_end() -> None:
    deltas = deltas_of(
        head(),
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "One"},
            {"type": "thinking_delta", "thinking": "."},
            {"type": "thinking_delta", "thinking": ""},
            {"type": "signature_delta", "signature": "s1"},
        ),
        block(1, {"type": "redacted_thinking", "data": "d2"}),
        block(2, {"type": "thinking", "thinking": "", "signature": "s3"}),
        tail(),
    )
    assert deltas[1:-1] == [
        {"reasoning_content": "One"},
        {"reasoning_content": "."},
        {"reasoning_details": [detail("One.", "s1", 0)]},
        {
            "reasoning_details": [
                {"type": "reasoning.encrypted", "data": "d2", "format": "anthropic-claude-v1", "index": 1}
            ]
        },
        {"reasoning_details": [detail("", "s3", 2)]},
    ]


def detail(text: str, signature: str, index: int) -> Json:
    fields = {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": index}
    return {**fields, "signature": signature}


def test_stream__thinking_between_calls__placed_as_in_the_whole_answer() -> None:
    thought: Json = {"type": "thinking", "thinking": "hm", "signature": "s"}
    call: Json = {"type": "tool_use", "name": "p", "input": {}}
    content: list[Json] = [
        thought,
        {"type": "text", "text": " "},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "Now."},
        {**call, "id": "toolu_1"},
        thought,
        {**call, "id": "toolu_2"},
        thought,
    ]
    streamed = deltas_of(head(), *(block(index, part) for index, part in enumerate(content)), tail())
    details = [entry for delta in streamed for entry in delta.get("reasoning_details", ())]
    body = json.dumps({"type": "message", "content": content}).encode()
    answer = json.loads(ADAPTER.parse_response(chat_request("claude-x"), body).body)
    assert details == answer["choices"][0]["message"]["reasoning_details"]
    assert [entry["index"] for entry in details] == [0, 1, 4, 6]


def test_stream__block_that_starts_with_content__nothing_lost() -> None:
    deltas = deltas_of(
        head(),
        block(0, {"type": "thinking", "thinking": "Hm", "signature": "s"}),
        block(1, {"type": "text", "text": "Hi"}, {"type": "text_delta", "text": " there"}),
        tail(),
    )
    assert deltas[1:-1] == [
        {"reasoning_content": "Hm"},
        {"reasoning_details": [detail("Hm", "s", 0)]},
        {"content": "Hi"},
        {"content": " there"},
    ]


def test_stream__citations__once_the_cited_text_is_whole() -> None:
    page = {"type": "web_search_result_location", "url": "https://a.test", "title": "A", "cited_text": "…"}
    paper = {"type": "char_location", "document_title": "P"}
    deltas = deltas_of(
        head(),
        text(0, "Über: "),
        block(
            1,
            {"type": "text", "text": "", "citations": []},
            {"type": "citations_delta", "citation": page},
            {"type": "citations_delta", "citation": paper},
            {"type": "text_delta", "text": "it "},
            {"type": "text_delta", "text": "rains"},
        ),
        block(2, {"type": "text", "text": ""}, {"type": "citations_delta", "citation": paper}),
        tail(),
    )
    fields = {"url": "https://a.test", "title": "A", "start_index": 6, "end_index": 14}
    assert deltas[4] == {"annotations": [{"type": "url_citation", "url_citation": fields, "index": 0}]}
    own = [delta["provider_specific_fields"]["content"] for delta in deltas if "provider_specific_fields" in delta]
    assert own == [
        [
            {"type": "text", "text": "Über: ", "index": 0},
            {"type": "text", "text": "it rains", "citations": [page, paper], "index": 1},
        ],
        [{"type": "text", "text": "", "citations": [paper], "index": 2}],
    ]


def test_stream__refusal__content_filter_and_why() -> None:
    why = {"type": "refusal", "explanation": "I will not."}
    chunks = chunks_of(head(), tail(stop_reason="refusal", stop_details=why))
    assert chunks[1]["choices"][0]["delta"] == {"refusal": "I will not."}
    assert chunks[-1]["choices"][0]["finish_reason"] == "content_filter"


def test_stream__container__sent_at_the_end() -> None:
    assert deltas_of(head(), text(0, "x"), tail(container={"id": "container_1"}))[2] == {
        "container": {"id": "container_1"}
    }


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [("max_tokens", "length"), ("pause_turn", "stop"), ("model_context_window_exceeded", "length"), (None, "stop")],
)
def test_stream__stop_reason__in_openais_words(stop_reason: str | None, expected: str) -> None:
    assert chunks_of(head(), text(0, "x"), tail(stop_reason=stop_reason))[-1]["choices"][0]["finish_reason"] == expected


def test_stream__usage__the_largest_of_the_reported_counts() -> None:
    counts = {"input_tokens": 100, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 7, "output_tokens": 3}
    later = {"input_tokens": 250, "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 8}}
    stream = translator()
    end = event("message_delta", delta=END, usage=later) + event("message_stop")
    run(stream, [head(usage=counts), text(0, "x"), end])
    assert stream.usage == Usage(317, 30, 60, 7, 8)


def test_stream__usage_missing__the_callers_estimate() -> None:
    stream = translator()
    for piece in (head(usage=None), text(0, "x"), event("message_delta", delta=END), event("message_stop")):
        stream.feed(piece)
    assert stream.usage is None
    stream.usage = Usage(5, 2)
    assert decoded(stream.closing())[-1]["usage"]["total_tokens"] == 7


def test_stream__what_is_not_known__passed_over() -> None:
    deltas = deltas_of(
        head(),
        event("event_of_tomorrow", index=0, delta={"type": "x"}),
        b": comment\n\n",
        block(0, {"type": "block_of_tomorrow", "data": {"x": 1}}, {"type": "delta_of_tomorrow", "text": "no"}),
        event("content_block_delta", index=7, delta={"type": "thinking_delta", "thinking": "of no block"}),
        event("content_block_stop", index=7),
        text(1, "Hi"),
        tail(),
        event("message_start", message={}),
    )
    assert [delta for delta in deltas if "provider_specific_fields" not in delta] == [
        {"role": "assistant", "content": ""},
        {"content": "Hi"},
        {},
    ]


def test_stream__compaction__whole_when_its_block_ends() -> None:
    start = {"type": "compaction", "content": None, "encrypted_content": None, "signature": "s"}
    delta = {"type": "compaction_delta", "content": "We met.", "encrypted_content": "x"}
    deltas = deltas_of(head(), text(0, "Hi"), block(1, start, delta), tail(stop_reason="compaction"))
    assert [delta["provider_specific_fields"] for delta in deltas if "provider_specific_fields" in delta] == [
        {
            "content": [
                {"type": "text", "text": "Hi", "index": 0},
                {**start, "content": "We met.", "encrypted_content": "x", "index": 1},
            ]
        },
        {"stop_reason": "compaction"},
    ]


def test_stream__last_event_without_a_blank_line__taken() -> None:
    assert deltas_of(head(), text(0, "Hi"), tail().rstrip(b"\n"))[-1] == {}


TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
STORIES = st.builds(
    Story,
    text=TEXTS,
    reasoning=TEXTS,
    signature=st.sampled_from(["", "c2ln"]),
    calls=st.lists(
        st.builds(Call, st.just(""), st.just("ping"), st.dictionaries(TEXTS, TEXTS, max_size=2)), max_size=3
    ).map(tuple),
    finish=st.just("stop"),
    usage=st.builds(Usage, st.integers(50, 99), st.integers(10, 99), st.integers(0, 20), st.integers(0, 20)),
    pieces=st.integers(1, 6),
)


@settings(max_examples=60, deadline=None)
@given(STORIES, st.lists(st.integers(0, 1 << 16), max_size=20))
def test_stream__any_story_cut_anywhere__the_whole_answer(story: Story, cuts: list[int]) -> None:
    data = b"".join(FAKE.stream(story).events)
    borders = sorted({cut % len(data) for cut in cuts} | {0, len(data)})
    pieces = [data[a:b] for a, b in pairwise(borders)]
    whole, cut = translator(), translator()
    expected, actual = run(whole, [data]), run(cut, pieces)
    assert without_created(actual) == without_created(expected)
    assert (cut.usage, cut.finish_reason) == (whole.usage, whole.finish_reason)
    answer = json.loads(ADAPTER.parse_response(chat_request("claude-x"), FAKE.whole(story).body).body)
    streamed = assembled(decoded(actual))
    message, choice = streamed["message"], answer["choices"][0]
    assert (message["content"] or "") == (choice["message"]["content"] or "")
    for name in ("reasoning_content", "reasoning_details"):
        assert message.get(name) == choice["message"].get(name)
    assert calls_in(message) == calls_in(choice["message"])
    assert (streamed["usage"], streamed["finish_reason"]) == (answer["usage"], choice["finish_reason"])


def calls_in(message: Json) -> list[tuple[str, str, Any]]:
    return [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", ())
    ]
