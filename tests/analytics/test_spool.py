from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.request_log.record import DEFAULT_RETENTION_DAYS, Operation, Outcome, SpoolEntry
from analytics.spool import frames, names
from analytics.spool import writer as writer_module
from analytics.spool.inflight import InflightRequest, InflightTable, kind_of, read_table
from analytics.spool.interrupted import record_interrupted
from analytics.spool.reader import Frame, is_finished, read_stretch
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry, make_record
from tests.night import examples
from tests.tables.cases import tabled

BODIES = st.binary(max_size=200) | st.builds(lambda n: frames.MAGIC * n, st.integers(1, 20))


def segments(directory: Path) -> list[Path]:
    return names.list_files(directory, names.SEGMENT)


def read(directory: Path) -> list[Frame]:
    return [frame for path in segments(directory) for frame in read_stretch(path, 0, finished=is_finished(path)).frames]


def ids(directory: Path) -> list[str]:
    return [frame.record().request_id for frame in read(directory)]


@pytest.fixture
def writer(spool: Path) -> Iterator[SpoolWriter]:
    found = SpoolWriter(spool)
    yield found
    found.close()


def test_append__any_content__reads_back_equal(spool: Path, writer: SpoolWriter) -> None:
    entries = [make_entry(b"{}", b""), make_entry(b"", b"\0" * 70_000), make_entry(frames.MAGIC, b"x", user_id="ü\n")]

    for entry in entries:
        writer.append(entry)

    found = read(spool)
    assert [SpoolEntry(frame.record(), frame.request, frame.response) for frame in found] == entries


def test_append__lone_surrogate__kept_with_a_replacement(spool: Path, writer: SpoolWriter) -> None:
    writer.append(make_entry(user_id="a\ud800b", attributes={"\ud800": "x"}))

    assert read(spool)[0].record().user_id == "a?b"


def test_append__segment_full__goes_on_in_a_new_one(spool: Path) -> None:
    writer = SpoolWriter(spool, segment_bytes=1000)
    entries = [make_entry(b"x" * 400) for _ in range(9)]

    for entry in entries:
        writer.append(entry)

    paths = segments(spool)
    assert len(paths) > 2
    assert [is_finished(path) for path in paths] == [True] * (len(paths) - 1) + [False]
    assert ids(spool) == [entry.record.request_id for entry in entries]
    writer.close()
    assert is_finished(paths[-1])


def test_append__disk_full_in_the_middle_of_a_frame__retried_whole(
    spool: Path, writer: SpoolWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = make_entry(b"1" * 100), make_entry(b"2" * 100), make_entry(b"3" * 100)
    writer.append(first)

    def short(fd: int, buffers: Sequence[bytes]) -> int:
        monkeypatch.undo()
        return os.write(fd, b"".join(buffers)[:50])

    monkeypatch.setattr(os, "writev", short)
    writer.append(second)
    writer.append(third)

    assert ids(spool) == [entry.record.request_id for entry in (first, second, third)]
    assert [read_stretch(path, 0, finished=True).damage for path in segments(spool)] == [[], []]
    assert writer.lost == 0


def test_append__over_quota__drops_content_before_rows(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_HOUSEKEEPING_SECONDS", 0.0)
    writer = SpoolWriter(spool, quota_bytes=2000)
    for _ in range(10):
        writer.append(make_entry(b"x" * 900, b"y" * 100))
    writer.close()

    found = read(spool)
    assert len(found) == 10
    assert [bool(frame.request) for frame in found] == [True] * 2 + [False] * 8
    assert writer.without_content == 8


@settings(max_examples=examples(15, 60), deadline=None)
@given(bodies=st.lists(BODIES, min_size=1, max_size=8), cut=st.floats(0, 1))
def test_segment__writer_killed_at_any_byte__complete_frames_survive(bodies: list[bytes], cut: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, ends = write_segment(Path(folder), bodies)
        length = int(cut * path.stat().st_size)
        os.truncate(path, length)

        living = read_stretch(path, 0, finished=False)
        dead = read_stretch(path, 0, finished=True)

    whole = [end for end in ends if end <= length]
    assert [frame.end for frame in living.frames] == whole == [frame.end for frame in dead.frames]
    assert living.end == (whole or [0])[-1]
    assert dead.end == length
    assert dead.damage == ([] if living.end == length else [(living.end, length)])


@settings(max_examples=examples(15, 60), deadline=None)
@given(bodies=st.lists(BODIES, min_size=3, max_size=8), seed=st.integers(0, 2**32))
def test_segment__damaged_anywhere__all_other_frames_survive(bodies: list[bytes], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, ends = write_segment(Path(folder), bodies)
        chance = random.Random(seed)
        content = bytearray(path.read_bytes())
        start = chance.randrange(len(content))
        end = min(len(content), start + chance.randrange(1, 30))
        content[start:end] = bytes(value ^ 0x5A for value in content[start:end])
        path.write_bytes(content)

        found = read_stretch(path, 0, finished=True)

    untouched = {e for s, e in zip([0, *ends], ends, strict=False) if e <= start or s >= end}
    assert {frame.end for frame in found.frames} == untouched
    assert found.end == len(content)


@settings(max_examples=examples(20, 80), deadline=None)
@given(before=st.lists(BODIES, min_size=1, max_size=5), after=st.lists(BODIES, max_size=5), data=st.data())
def test_open_segment__damaged_anywhere_while_written__all_other_frames_are_read_once(
    before: list[bytes], after: list[bytes], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = SpoolWriter(Path(folder))
        ends = [append_body(writer, body) for body in before]
        (path,) = segments(Path(folder))
        shipped = data.draw(st.sampled_from([0, *ends]))
        start, end = damage(path, data, first=shipped)

        found = [read_stretch(path, shipped, finished=False)]
        for body in [*after, b"last"]:
            ends.append(append_body(writer, body))
            found.append(read_stretch(path, found[-1].end, finished=False))
        writer.close()

    expected = [e for s, e in pairwise([0, *ends]) if s >= shipped and (e <= start or s >= end)]
    assert [frame.end for stretch in found for frame in stretch.frames] == expected
    assert found[-1].end == ends[-1]
    assert all(s < e <= found[-1].end for stretch in found for s, e in stretch.damage)


def test_open_segment__last_frame_cut_short__is_waited_for(spool: Path, writer: SpoolWriter) -> None:
    end = append_body(writer, frames.MAGIC * 50)
    (path,) = segments(spool)
    whole = path.read_bytes()
    append_body(writer, frames.MAGIC * 50)
    frame = path.read_bytes()[end:]

    for length in range(len(frame)):
        path.write_bytes(whole + frame[:length])
        assert read_stretch(path, 0, finished=False).end == end
        assert read_stretch(path, 0, finished=False).damage == []


def append_body(writer: SpoolWriter, body: bytes) -> int:
    """Appends one record and returns where it ends in the writer's segment."""
    writer.append(make_entry(body, body[::-1]))
    assert writer._segment is not None
    return writer._segment.size


def damage(path: Path, data: st.DataObject, *, first: int) -> tuple[int, int]:
    """Overwrites some bytes of a segment from `first` on, if there are any, and returns their range."""
    content = bytearray(path.read_bytes())
    if first == len(content):
        return first, first
    start = data.draw(st.integers(first, len(content) - 1))
    end = min(len(content), start + data.draw(st.integers(1, 600)))
    flips = data.draw(st.binary(min_size=end - start, max_size=end - start))
    content[start:end] = bytes(value ^ (flip or 0x5A) for value, flip in zip(content[start:end], flips, strict=True))
    with path.open("r+b") as file:
        file.write(content)
    return start, end


def test_segment__frame_planted_in_damaged_content__not_taken_for_a_record(spool: Path) -> None:
    planted = b"".join(frames.pack(frames.encode_meta(make_entry().record), b"", b"", seed=0))
    path, _ = write_segment(spool, [planted, b"last"])
    content = bytearray(path.read_bytes())
    content[25] ^= 1
    path.write_bytes(content)

    assert [frame.request for frame in read_stretch(path, 0, finished=True).frames] == [b"last"]


def write_segment(directory: Path, bodies: list[bytes]) -> tuple[Path, list[int]]:
    writer = SpoolWriter(directory)
    for body in bodies:
        writer.append(make_entry(body, body[::-1]))
    writer.close()
    (path,) = segments(directory)
    return path, [frame.end for frame in read_stretch(path, 0, finished=True).frames]


def begin(table: InflightTable, **values: str) -> int:
    record = make_record(**values)
    return table.begin(
        InflightRequest(record.request_id, record.project_id, record.ts, 7, "gpt-4o", True, record.session_id, "u")
    )


def test_inflight__begin_and_end__slots_are_used_again(spool: Path) -> None:
    table = InflightTable(spool)
    slots = [begin(table, session_id=f"s{i}") for i in range(1000)]
    for slot in slots[1:]:
        table.end(slot)

    (left,) = read_table(table.path.read_bytes())
    assert (left.session_id, left.user_id, left.api_key_id, left.stream) == ("s0", "u", 7, True)
    assert len(table) == 1
    assert begin(table) in slots
    table.close()
    assert table.path.exists()


@pytest.mark.parametrize("caller", [("", ""), ("u", "s"), ("ü" * 200, "\udc80")])
def test_inflight__of_a_kind__has_the_slot_of_its_own_request(spool: Path, caller: tuple[str, str]) -> None:
    record = make_record()
    user_id, session_id = caller
    request = InflightRequest(
        record.request_id, record.project_id, record.ts, 7, "gpt-4o", False, session_id, user_id, 30, team_id=2**40
    )
    other = msgspec.structs.replace(request, request_id="", ts=0, session_id="", user_id="", stream=False)
    table = InflightTable(spool)
    # What the slot held before is overwritten.
    table.end(begin(table, session_id="before"))

    table.end(table.begin_of(kind_of(other), record.request_id, record.ts, caller))
    of_kind = table.path.read_bytes()
    table.end(table.begin(request))

    assert table.path.read_bytes() == of_kind
    table.close()


def test_inflight__closed_with_nothing_in_flight__leaves_no_file(spool: Path) -> None:
    table = InflightTable(spool)
    table.end(begin(table))
    table.close()

    assert not table.path.exists()


def test_inflight__longest_texts__cut_at_whole_characters(spool: Path) -> None:
    table = InflightTable(spool)
    begin(table, session_id="ü" * 200)

    assert next(iter(read_table(table.path.read_bytes()))).session_id == "ü" * 128
    table.close()


WORKER = """
import sys, time
from pathlib import Path
from analytics.spool.inflight import InflightRequest, InflightTable
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry
directory = Path(sys.argv[1])
writer, table = SpoolWriter(directory, segment_bytes=20_000), InflightTable(directory)
project = "0190a1b2-0000-7000-8000-000000000001"
open_requests = []
while True:
    entry = make_entry(b"x" * 300, project_id=project)
    record = entry.record
    slot = table.begin(InflightRequest(record.request_id, project, record.ts, 1, "m", False, "s", "u"))
    print("begun", record.request_id, flush=True)
    open_requests.append((slot, entry))
    if len(open_requests) > 3:
        slot, entry = open_requests.pop(0)
        writer.append(entry)
        table.end(slot)
        print("done", entry.record.request_id, flush=True)
"""


def test_worker__killed__every_admitted_request_is_recorded_exactly_once(spool: Path) -> None:
    messages: list[list[str]] = []
    interrupted = 0
    for number in (5, 40, 333):
        with subprocess.Popen([sys.executable, "-c", WORKER, str(spool)], stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            messages.extend(worker.stdout.readline().split() for _ in range(number))
            interrupted += record_interrupted(spool)
            worker.send_signal(signal.SIGKILL)
            messages.extend(
                line.split() for line in worker.stdout.read().splitlines(keepends=True) if line.endswith("\n")
            )

    interrupted += record_interrupted(spool)

    outcomes = {frame.record().request_id: frame.record().outcome for frame in read(spool)}
    assert len(outcomes) == len(ids(spool))
    done = {parts[1] for parts in messages if parts[0] == "done"}
    begun = {parts[1] for parts in messages if parts[0] == "begun"}
    assert done <= {key for key, outcome in outcomes.items() if outcome == Outcome.SUCCESS}
    assert begun <= outcomes.keys()
    # A killed worker may have begun and recorded one more request than it could report.
    assert len(outcomes) - len(begun) <= 3
    assert interrupted == sum(outcome == Outcome.INTERRUPTED for outcome in outcomes.values()) > 0
    assert record_interrupted(spool) == 0
    assert names.list_files(spool, names.INFLIGHT) == []


def test_interrupted__recorded_but_slot_still_in_use__not_doubled(spool: Path) -> None:
    writer, table = SpoolWriter(spool), InflightTable(spool)
    entry = make_entry(session_id="s")
    record = entry.record
    table.begin(InflightRequest(record.request_id, record.project_id, record.ts, 1, "m", False, "s", "u"))
    begin(table, session_id="t")
    writer.append(entry)
    writer.close()
    table.close()

    assert record_interrupted(spool) == 1

    outcomes = {frame.record().session_id: frame.record().outcome for frame in read(spool)}
    assert outcomes == {"s": Outcome.SUCCESS, "t": Outcome.INTERRUPTED}


@pytest.mark.parametrize(("retention", "kept"), [(30, 30), (0, DEFAULT_RETENTION_DAYS), (10**6, 2**16 - 1)])
def test_interrupted__of_a_project_with_a_retention__is_kept_as_long(spool: Path, retention: int, kept: int) -> None:
    """A table of an earlier version has a retention of 0."""
    table = InflightTable(spool)
    record = make_entry().record
    table.begin(InflightRequest(record.request_id, record.project_id, record.ts, 1, "m", False, "s", "u", retention))
    table.close()

    record_interrupted(spool)

    [frame] = read(spool)
    assert frame.record().retention_days == kept


def test_interrupted__shipper_died_before_removing_the_table__not_doubled(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = InflightTable(spool)
    begin(table)
    table.close()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            record_interrupted(spool)

    assert record_interrupted(spool) == 0
    assert len(read(spool)) == 1


@pytest.mark.parametrize("operation", [str(operation) for operation in Operation])
def test_interrupted__of_any_operation__is_recorded_with_it(spool: Path, operation: str) -> None:
    table = InflightTable(spool)
    record = make_entry().record
    table.begin(
        InflightRequest(record.request_id, record.project_id, record.ts, 1, "m", False, "s", "u", operation=operation)
    )
    table.close()

    record_interrupted(spool)

    [frame] = read(spool)
    assert frame.record().operation == operation


@pytest.mark.parametrize(("team_id", "recorded"), [(0, 0), (7, 7), (2**24 - 1, 2**24 - 1), (2**24, 0)])
def test_interrupted__of_a_key_in_a_team__is_recorded_with_it_as_far_as_a_slot_has_room(
    spool: Path, team_id: int, recorded: int
) -> None:
    table = InflightTable(spool)
    record = make_entry().record
    table.begin(
        InflightRequest(record.request_id, record.project_id, record.ts, 1, "m", True, "s", "u", 30, team_id=team_id)
    )
    table.close()

    record_interrupted(spool)

    [frame] = read(spool)
    found = frame.record()
    assert (found.team_id, found.api_key_id, found.is_stream, found.retention_days) == (recorded, 1, True, 30)


@tabled
def test_interrupted__after_a_provider_was_asked__costs_the_estimated_prompt(
    spool: Path, tokens: int, rate: int, found: tuple[int, bool, bool, str]
) -> None:
    table = InflightTable(spool)
    record = make_entry().record
    # What the slot held before is not taken for this request's.
    former = begin(table)
    table.expect(former, 77, 77)
    table.end(former)
    slot = table.begin(
        InflightRequest(record.request_id, record.project_id, record.ts, 1, "m", True, "s", "u", source="judge")
    )
    if tokens:
        table.expect(slot, tokens, rate)
    table.close()

    record_interrupted(spool)

    [frame] = read(spool)
    one = frame.record()
    assert (one.prompt_tokens, one.tokens_estimated, one.cost_known, one.cost_usd) == found
    assert (one.source, one.outcome) == ("judge", Outcome.INTERRUPTED)
