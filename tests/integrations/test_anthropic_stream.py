"""Tests the translation of streams of the Messages API to chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import StreamEvent
from integrations.providers.usage import Usage
from tests.fakes.dialects.anthropic import FAKE
from tests.fakes.dialects.story import Call, Story
from tests.integrations.adapters.assembled import assembled
from tests.integrations.anthropic_events import Json, translator
from tests.integrations.exchanges import chat_request, decoded, run
from tests.night import examples


def without_created(events: Iterable[StreamEvent]) -> list[Json]:
    """Returns the chunks without the time, since two runs may fall into different seconds."""
    return [{name: value for name, value in chunk.items() if name != "created"} for chunk in decoded(events)]


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


@settings(max_examples=examples(20, 60), deadline=None)
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
