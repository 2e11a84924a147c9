"""The allocations of requests in flight are in the table that outlives their worker."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from analytics.request_log.record import Outcome, RequestRecord
from analytics.spool import names
from analytics.spool.inflight import InflightAllocation, InflightRequest, InflightTable, read_table
from analytics.spool.interrupted import record_interrupted
from analytics.spool.reader import read_stretch
from tests.factories.analytics import make_record

# The slots of the release before, and the formats by which it reads them.
FORMER_SLOT = struct.Struct("<B?H4xqQ36s36s96s256s256s")
SLOT_BYTES = FORMER_SLOT.size

ALLOCATION = InflightAllocation(
    prompt_config_id="0190a1b2-0000-7000-8000-000000000002",
    # This is the longest possible name.
    prompt_name="ü" * 100,
    prompt_version=2**32 - 1,
    rollout_id="0190a1b2-0000-7000-8000-000000000003",
    rollout_stage=7,
    variant="baseline",
    alloc_unit=2**64 - 1,
    alloc_fallback=True,
)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def begin(table: InflightTable, record: RequestRecord) -> int:
    return table.begin(
        InflightRequest(record.request_id, record.project_id, record.ts, 7, "gpt-4o", True, record.session_id, "u")
    )


def begin_of_rollout(table: InflightTable, record: RequestRecord, allocation: InflightAllocation = ALLOCATION) -> int:
    slot = begin(table, record)
    table.allocate(slot, record.request_id, allocation)
    return slot


def test_inflight__of_a_rollout__keeps_what_it_was_given_with_its_own_request(spool: Path) -> None:
    table = InflightTable(spool)
    # There are twice as many requests as slots at first, and every second one belongs to a rollout.
    given = {make_record().request_id: ALLOCATION._replace(rollout_stage=number) for number in range(1, 300)}
    for request_id, allocation in given.items():
        begin_of_rollout(table, make_record(request_id=request_id), allocation)
        begin(table, make_record())

    found = [(request.request_id, request.allocation) for request in read_table(table.path.read_bytes())]

    assert len(table) == len(found) == 2 * len(given)
    assert {key: allocation for key, allocation in found if allocation is not None} == given
    table.close()


def test_inflight__allocation_that_is_noted_twice__has_one_slot(spool: Path) -> None:
    table = InflightTable(spool)
    record = make_record()
    slot = begin_of_rollout(table, record)

    table.allocate(slot, record.request_id, ALLOCATION)

    assert len(table) == 1
    (found,) = read_table(table.path.read_bytes())
    assert found.allocation == ALLOCATION
    table.end(slot)
    assert len(table) == 0
    table.close()


def test_inflight__question_that_the_cache_knew__is_noted_for_its_request_alone(spool: Path) -> None:
    table = InflightTable(spool)
    slots = [begin_of_rollout(table, make_record()) for _ in range(3)]

    table.note_question_cached(slots[1])

    found = [request.allocation for request in read_table(table.path.read_bytes())]
    assert found == [ALLOCATION, ALLOCATION._replace(question_cached=True), ALLOCATION]
    table.end(slots[1])
    begin_of_rollout(table, make_record())
    assert [request.allocation for request in read_table(table.path.read_bytes())] == [ALLOCATION] * 3
    table.close()


def test_inflight__ended_requests_of_rollouts__their_slots_are_used_again_and_say_nothing(spool: Path) -> None:
    table = InflightTable(spool)
    size = table.path.stat().st_size
    for _ in range(5):
        # The requests and their allocations fill most of the initial slots.
        for slot in [begin_of_rollout(table, make_record()) for _ in range(100)]:
            table.end(slot)
    last = begin(table, make_record())

    (found,) = read_table(table.path.read_bytes())
    assert found.allocation is None
    assert (len(table), table.path.stat().st_size) == (1, size)
    table.end(last)
    table.close()
    assert not table.path.exists()


def test_inflight__worker_died_while_a_request_ended__the_next_in_its_slot_is_not_given_the_same(spool: Path) -> None:
    table = InflightTable(spool)
    slot = begin_of_rollout(table, make_record())
    before = table.path.read_bytes()
    (own,) = (start for start in range(0, len(before), SLOT_BYTES) if before[start] == 2)
    table.end(slot)
    assert begin(table, make_record()) == slot
    # The bytes are those of a request that ended while its allocation stayed.
    after = table.path.read_bytes()
    left = after[:own] + before[own : own + SLOT_BYTES] + after[own + SLOT_BYTES :]

    (found,) = read_table(left)

    assert found.allocation is None
    table.close()


def test_inflight__table_of_the_release_before__is_read() -> None:
    texts = (b"request", b"project", b"model", b"user", b"session")
    content = FORMER_SLOT.pack(1, True, 30, 5, 7, *texts) + FORMER_SLOT.pack(0, True, 30, 5, 7, *texts)

    assert list(read_table(content)) == [
        InflightRequest("request", "project", 5, 7, "model", True, "session", "user", 30, None)
    ]


def test_inflight__shipper_of_the_release_before__reads_every_request_once(spool: Path) -> None:
    table = InflightTable(spool)
    records = [make_record(session_id=f"s{number}") for number in range(300)]
    for record in records:
        begin_of_rollout(table, record)

    slots = [slot for slot in FORMER_SLOT.iter_unpack(table.path.read_bytes()) if slot[0] == 1]

    found = sorted((text(slot[5]), text(slot[9])) for slot in slots)
    assert found == sorted((record.request_id, record.session_id) for record in records)
    table.close()


def text(field: bytes) -> str:
    return field.rstrip(b"\0").decode()


def test_interrupted__of_a_rollout__says_what_the_comparison_needs(spool: Path) -> None:
    table = InflightTable(spool)
    given, plain = make_record(), make_record()
    begin_of_rollout(table, given)
    begin(table, plain)
    table.close()

    assert record_interrupted(spool) == 2

    (segment,) = names.list_files(spool, names.SEGMENT)
    records = {frame.record().request_id: frame.record() for frame in read_stretch(segment, 0, finished=True).frames}
    assert {record.outcome for record in records.values()} == {Outcome.INTERRUPTED}
    record = records[given.request_id]
    assert {name: getattr(record, name) for name in ALLOCATION._fields} == ALLOCATION._asdict()
    assert (records[plain.request_id].rollout_id, records[plain.request_id].variant) == ("", "")
