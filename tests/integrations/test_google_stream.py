"""Tests Gemini's streams, in both of Google's forms, cut anywhere."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.base import StreamTranslator
from integrations.providers.common.sse import MAX_EVENT_BYTES
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.google import GEMINI
from tests.integrations.exchanges import chat_request
from tests.integrations.google_exchanges import answer, sse

NOW = 1_800_000_000.0
OVERLOADED = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)


def translator() -> StreamTranslator:
    return GEMINI.stream(chat_request("gemini-2.5-flash", stream=True))


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
