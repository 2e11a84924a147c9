"""Tests Cohere's streams, cut anywhere, and the errors inside them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.integrations.adapters.assembled import assembled
from tests.integrations.cohere_answers import (
    END,
    START,
    event,
    sse,
    text_delta,
)
from tests.integrations.exchanges import decoded, run, translator


def thinking_delta(value: str, index: int = 0) -> dict[str, Any]:
    return event("content-delta", {"content": {"thinking": value}}, index=index)


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
