"""The columns of a batch are the rows that its records make one by one, whatever the records have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import FrameType
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.request_log.columns import FLAGS, IDS, INGESTED, MONEY, NO_ID, NO_MONEY, NUMBERS, TEXTS
from analytics.request_log.record import AttemptRecord, Outcome, RequestRecord, SpoolEntry
from analytics.shipper import columns as shipped
from analytics.shipper.columns import chat_response, joined, to_columns
from analytics.shipper.inserting.handing_over import decoded, encoded
from analytics.shipper.texts import completion_text, prompt_text
from analytics.spool.frames import encode_meta
from analytics.spool.reader import Frame
from analytics.totals.counting import Counting
from analytics.totals.figures import Totals
from tests.factories.analytics import make_entry, rows_of
from tests.night import examples

_LATEST = 2_493_072_000 * 10**6
_ODD_TEXT = st.text(st.characters(codec=None), max_size=12)
_NUMBER = st.one_of(st.integers(0, 500), st.integers(-(2**40), 2**70))
_COST = st.one_of(st.just(""), st.decimals(0, 10**8 - 1, places=10).map(str), st.sampled_from(["0", "1E-7", "-3.5"]))
_ID = st.one_of(st.just(""), st.uuids().map(str), st.uuids().map(lambda one: one.hex.upper()))
_BODY = st.one_of(
    st.binary(max_size=30),
    st.builds(
        lambda text: msgspec.json.encode({"messages": [{"role": "user", "content": text}], "choices": []}),
        st.text(max_size=30),
    ),
    st.builds(lambda text: msgspec.json.encode({"choices": [{"message": {"content": text}}]}), st.text(max_size=30)),
)
_ATTEMPT = st.builds(AttemptRecord, provider=st.text(max_size=5), model=st.just("m"), latency_ms=st.integers(0, 9))
_RECORD = st.builds(
    RequestRecord,
    project_id=st.sampled_from([str(UUID(int=1)), str(UUID(int=2)), "{" + str(UUID(int=3)) + "}"]),
    request_id=st.one_of(st.uuids().map(str), st.uuids().map(lambda one: "urn:uuid:" + str(one))),
    ts=_NUMBER,
    outcome=st.sampled_from(Outcome),
    attempts=st.lists(_ATTEMPT, max_size=2).map(tuple),
    attributes=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    **{name: st.one_of(st.just(""), _ID) for name in IDS},
    **{name: st.one_of(st.just(""), _ODD_TEXT) for name in TEXTS if name not in ("source", "operation")},
    source=st.sampled_from(["gateway", "telemetry", ""]),
    operation=st.sampled_from(["chat", "messages", ""]),
    **dict.fromkeys(NUMBERS, st.one_of(st.just(0), _NUMBER)),
    **{name: st.booleans() for name in FLAGS},
    **dict.fromkeys(MONEY, _COST),
)


def row_of(frame: Frame) -> Mapping[str, Any]:
    """Returns the row of a frame, value by value and without any of what a batch shares."""
    record = msgspec.json.decode(frame.meta, type=RequestRecord)
    response = chat_response(frame, record)
    row: dict[str, Any] = {
        "project_id": UUID(record.project_id),
        "request_id": UUID(record.request_id),
        "ts": min(max(record.ts, 0), _LATEST),
        "outcome": record.outcome.value,
        "attempts": msgspec.json.encode(record.attempts) if record.attempts else b"",
        "attributes": record.attributes,
        "spans_derived": record.source != "telemetry",
        "prompt": prompt_text(frame.request),
        "completion": completion_text(response),
        "request": frame.request.decode("utf-8", "replace").encode(),
        "response": response.decode("utf-8", "replace").encode(),
        "shared": (),
        "shared_at": 0,
        "shared_bytes": 0,
        "opening": b"",
    }
    row.update((name, getattr(record, name)) for name in (*TEXTS, *FLAGS))
    row.update((name, min(max(getattr(record, name), 0), maximum)) for name, maximum in NUMBERS.items())
    for name in IDS:
        row[name] = UUID(getattr(record, name)) if getattr(record, name) else NO_ID
    for name in MONEY:
        cost = getattr(record, name)
        row[name] = str(Decimal(cost).quantize(Decimal("0.0000000001"))) if cost else NO_MONEY
    return row


def frame_of(entry: SpoolEntry) -> Frame:
    return Frame(0, 0, encode_meta(entry.record), entry.request, entry.response)


@settings(max_examples=examples(37, 150), deadline=None)
@given(batch=st.lists(st.tuples(_RECORD, _BODY, _BODY), min_size=1, max_size=6))
def test_columns__any_records__are_the_rows_of_each(batch: list[tuple[RequestRecord, bytes, bytes]]) -> None:
    frames = [frame_of(SpoolEntry(*entry)) for entry in batch]

    rows = rows_of(to_columns(frames))

    assert rows == [tuple(row_of(frame)[name] for name in INGESTED) for frame in frames]


@settings(max_examples=examples(20, 150), deadline=None)
@given(batch=st.lists(st.tuples(_RECORD, _BODY, _BODY), min_size=2, max_size=6))
def test_columns__handed_over_in_parts_and_joined__are_the_same_rows(
    batch: list[tuple[RequestRecord, bytes, bytes]],
) -> None:
    frames = [frame_of(SpoolEntry(*entry)) for entry in batch]
    parts = [to_columns(frames[:1]), to_columns(frames[1:])]

    handed_over = joined([decoded(encoded(part)) for part in parts])

    assert encoded(handed_over) == encoded(joined(parts))
    assert rows_of(joined(parts)) == rows_of(to_columns(frames))


@pytest.mark.parametrize("number", [shipped._AT_ONCE - 1, shipped._AT_ONCE, 2 * shipped._AT_ONCE + 1])
def test_columns__of_more_frames_than_are_taken_at_once__have_all_in_order(number: int) -> None:
    frames = [frame_of(make_entry(user_id="ann" if place == number - 1 else "")) for place in range(number)]

    columns = to_columns(frames)

    assert columns["request_id"] == [UUID(frame.record().request_id) for frame in frames]
    assert columns["user_id"] == [""] * (number - 1) + ["ann"]
    assert {len(values) for values in columns.values()} == {number}
    assert "trace_id" not in columns


@pytest.mark.parametrize("values", [{"request_id": "none"}, {"project_id": ""}, {"cost_usd": "1E9"}, {"cost_usd": "x"}])
def test_columns__of_a_record_that_fits_none__are_refused(values: dict[str, Any]) -> None:
    frames = [frame_of(make_entry()), frame_of(make_entry(**values))]

    with pytest.raises(ValueError, match=r"UUID|cost"):
        to_columns(frames)


def test_columns__of_no_frames__are_none() -> None:
    assert to_columns([]) == {}


def test_columns__of_plain_requests__enter_few_functions_for_each() -> None:
    """What rows share is done for a column at once. The count of functions of Python does not depend on the machine."""
    request = msgspec.json.encode({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user"}]})
    response = msgspec.json.encode({"choices": [{"message": {"role": "assistant", "content": "Hello"}}]})
    project = str(UUID(int=1))
    attempts = (AttemptRecord("openai", "gpt-4o-mini"),)
    frames = [frame_of(make_entry(request, response, attempts=attempts, project_id=project)) for _ in range(640)]
    to_columns(frames)

    entered = _functions_entered(lambda: to_columns(frames))
    counted = _functions_entered(lambda: Counting(Totals(since=0)).add(to_columns(frames))) - entered

    # Bodies and their texts are the only thing that is looked at one by one.
    assert entered / len(frames) < 24
    assert counted / len(frames) < 3


def _functions_entered(run: Callable[[], object]) -> int:
    entered = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return entered
