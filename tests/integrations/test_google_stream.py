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
from tests.integrations.exchanges import chat_request, decoded, run
from tests.integrations.google_exchanges import answer, array, sse
from tests.night import examples

Form = Callable[..., bytes]
NOW = 1_800_000_000.0
OVERLOADED = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)


def translator() -> StreamTranslator:
    return GEMINI.stream(chat_request("gemini-2.5-flash", stream=True))


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


@settings(max_examples=examples(40, 150), deadline=None)
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
