"""Tests streams of ConverseStream that no recording holds, and the exceptions inside them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.dialects.bedrock import FAKE
from tests.fakes.dialects.story import Call, Story
from tests.integrations.bedrock_answers import (
    choice_of,
    run,
)
from tests.night import examples

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


@settings(max_examples=examples(20, 60), deadline=None)
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
