from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.common import sse
from integrations.providers.common.sse import EventParser, EventTooLargeError, ServerSentEvent
from tests.tables.cases import tabled


def parse(*pieces: bytes) -> list[ServerSentEvent]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.flush()


@tabled
def test_parser__every_form_of_the_standard__same_events(stream: bytes, expected: list[bytes]) -> None:
    assert [event.data for event in parse(stream)] == expected


def test_parser__named_event__name_kept() -> None:
    assert parse(b'event: error\ndata: {"a":1}\n\n') == [ServerSentEvent(b'{"a":1}', "error")]


_line_end = st.sampled_from([b"\n", b"\r\n", b"\r"])
_line = st.one_of(
    st.text(alphabet='aä👋{}:" ', max_size=12).map(lambda text: b"data: " + text.encode()),
    st.text(alphabet="aä👋:", max_size=8).map(lambda text: b"data:" + text.encode()),
    st.sampled_from([b": ping", b":", b"event: error", b"event:x", b"id: 3", b"data", b"unknown: field", b""]),
)


@st.composite
def _streams(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    stream = b"".join(draw(_line) + draw(_line_end) for _ in range(draw(st.integers(0, 12))))
    return stream, sorted(draw(st.lists(st.integers(0, len(stream)), max_size=len(stream))))


@given(_streams())
def test_parser__any_cuts__events_equal_to_the_uncut_stream(case: tuple[bytes, list[int]]) -> None:
    stream, cuts = case
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parse(*pieces) == parse(stream)


@given(_streams())
def test_parser__any_line_ends__events_equal_to_those_of_lf(case: tuple[bytes, list[int]]) -> None:
    stream, _ = case
    assert parse(stream) == parse(stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


def test_parser__line_without_end__refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    parser = EventParser()
    assert len(parser.feed(b"data: x\n\n" * 50)) == 50
    with pytest.raises(EventTooLargeError):
        for _ in range(20):
            parser.feed(b"data: unending ")
