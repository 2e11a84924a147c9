"""The spool on a real file system that fills up uses its reserve, then memory, and then counts lost records."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.request_log.record import SpoolEntry
from analytics.shipper.spool_status import read_status
from analytics.spool import names
from analytics.spool import writer as writer_module
from analytics.spool.counters import read_losses
from analytics.spool.inflight import InflightRequest, InflightTable
from analytics.spool.reader import is_finished, read_stretch
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import wait_until

_RESERVE = 256 * 1024
_BODY = b"x" * 8000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 8 << 20) as found:
        yield found


@pytest.fixture
def writer(disk: SmallDisk) -> Iterator[SpoolWriter]:
    found = SpoolWriter(disk.path / "spool", reserve_bytes=_RESERVE, queue_bytes=1 << 20)
    yield found
    found.close()


def recorded(directory: Path) -> list[str]:
    """Returns the ids of all records on disk, in order; no byte between them is damaged."""
    found = [read_stretch(path, 0, finished=is_finished(path)) for path in names.list_files(directory, names.SEGMENT)]
    assert [stretch.damage for stretch in found if stretch.damage] == []
    return [frame.record().request_id for stretch in found for frame in stretch.frames]


def append(writer: SpoolWriter, entries: list[SpoolEntry]) -> list[str]:
    for entry in entries:
        writer.append(entry)
    return [entry.record.request_id for entry in entries]


def test_append__disk_full__reserve_takes_the_records_at_once(disk: SmallDisk, writer: SpoolWriter) -> None:
    ids = append(writer, [make_entry(_BODY)])
    disk.fill()

    ids += append(writer, [make_entry(_BODY) for _ in range(20)])

    assert recorded(disk.path / "spool") == ids
    assert read_losses(disk.path / "spool").queued == 0


def test_append__reserve_used_up__records_wait_in_memory_and_are_written_in_order(
    disk: SmallDisk, writer: SpoolWriter, caplog: pytest.LogCaptureFixture
) -> None:
    spool = disk.path / "spool"
    disk.fill()
    ids = append(writer, [make_entry(_BODY) for _ in range(60)])
    assert 0 < len(recorded(spool)) < 60
    assert read_losses(spool).queued == 60 - len(recorded(spool))
    assert writer.has_room

    disk.free()
    ids += append(writer, [make_entry(_BODY)])

    wait_until(lambda: recorded(spool) == ids, what="the records that waited, and nobody came for them")
    wait_until(lambda: "spool.write_recovered" in caplog.text)
    assert read_losses(spool).queued == writer.lost == 0
    events = [record.getMessage().split()[0] for record in caplog.records]
    assert [events.count(name) for name in ("spool.write_failed", "spool.record_lost", "spool.write_recovered")] == [
        1, 0, 1
    ]  # fmt: skip
    # The first segment, and the reserve that became one.
    assert len(names.list_files(spool, names.SEGMENT)) <= 3
    # A new reserve is set aside for the next time.
    disk.fill()
    ids += append(writer, [make_entry(_BODY)])
    assert recorded(spool) == ids


def test_append__memory_full_as_well__texts_go_first_and_the_rest_is_counted(
    disk: SmallDisk, writer: SpoolWriter, caplog: pytest.LogCaptureFixture
) -> None:
    spool = disk.path / "spool"
    disk.fill()

    ids = append(writer, [make_entry(b"secret" + _BODY) for _ in range(1000)])

    assert not writer.has_room
    losses = read_losses(spool)
    assert losses.lost == writer.lost > 0
    assert losses.without_content == writer.without_content > 0
    assert losses.last_loss > 0
    assert len(recorded(spool)) + losses.queued + losses.lost == 1000
    disk.free()
    wait_until(lambda: read_losses(spool).queued == 0)
    assert recorded(spool) == ids[: 1000 - losses.lost]
    assert caplog.text.count("spool.record_lost") == 1
    assert "secret" not in caplog.text


def test_append__disk_full_for_many_tries__no_further_files(disk: SmallDisk) -> None:
    spool = disk.path / "spool"
    writer = SpoolWriter(spool, reserve_bytes=0, queue_bytes=0)
    disk.fill()

    append(writer, [make_entry(_BODY) for _ in range(50)])

    assert read_losses(spool).lost == 50
    assert len(list(spool.iterdir())) <= 2  # The files are the segment and the counters.
    writer.close()


def test_close__disk_still_full__what_waits_is_counted_as_lost(disk: SmallDisk, writer: SpoolWriter) -> None:
    disk.fill()
    append(writer, [make_entry(_BODY) for _ in range(60)])
    kept = len(recorded(disk.path / "spool"))

    writer.close()

    losses = read_losses(disk.path / "spool")
    assert (losses.lost, losses.queued) == (60 - kept, 0)


_WAITING_CHILD = """
import sys, time
from pathlib import Path
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry
from tests.small_disk import SmallDisk
disk = SmallDisk(Path(sys.argv[1]))
writer = SpoolWriter(disk.path / "spool", reserve_bytes=0)
disk.fill()
for _ in range(7):
    writer.append(make_entry(b"x" * 8000))
print("waiting", flush=True)
time.sleep(600)
"""


def test_worker__killed_while_records_wait__they_count_as_lost_once(disk: SmallDisk) -> None:
    spool = disk.path / "spool"
    with subprocess.Popen([sys.executable, "-c", _WAITING_CHILD, str(disk.path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"waiting\n"
        waiting = read_losses(spool)
        os.kill(child.pid, signal.SIGKILL)
    disk.free()

    dead = read_losses(spool)
    successor = SpoolWriter(spool)
    again = read_losses(spool)
    successor.close()

    assert (waiting.lost, waiting.queued) == (0, 7)
    assert (dead.lost, dead.queued) == (again.lost, again.queued) == (7, 0)
    assert len(list(spool.glob("losses-*"))) == 1


def test_worker__started_on_a_full_disk__serves_and_counts_from_then_on(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_HOUSEKEEPING_SECONDS", 0.0)
    spool = disk.path / "spool"
    spool.mkdir()
    disk.fill()

    writer, table = SpoolWriter(spool, reserve_bytes=_RESERVE, queue_bytes=20_000), InflightTable(spool)
    slots = [
        table.begin(InflightRequest(f"id-{number}", "project", 0, 0, "model", False, "", "")) for number in range(300)
    ]
    ids = append(writer, [make_entry() for _ in range(20)])
    disk.free()
    wait_until(lambda: len(recorded(spool)) == 20 - writer.lost, what="what waited to be written")
    ids += append(writer, [make_entry()])

    assert writer.lost > 0
    assert recorded(spool) == [*ids[: 20 - writer.lost], ids[-1]]
    wait_until(lambda: read_losses(spool).lost == writer.lost, what="the count to be kept in a file")
    for slot in slots:
        table.end(slot)
    assert len(table) == 0
    table.close()
    writer.close()


def test_status__tells_what_waits_what_is_lost_and_what_is_left(
    disk: SmallDisk, writer: SpoolWriter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    spool = disk.path / "spool"
    assert read_status(spool).oldest_unshipped_seconds == 0.0
    append(writer, [make_entry(_BODY, ts=1_000_000_000_000_000)])

    before = read_status(spool)
    disk.fill()
    append(writer, [make_entry(_BODY) for _ in range(400)])
    full = read_status(spool)

    assert before.segment_bytes == before.unshipped_bytes > len(_BODY)
    assert before.oldest_unshipped_seconds > 700_000_000
    assert before.free_bytes > 1 << 20
    assert (full.free_bytes, full.dead_letters) == (0, 0)
    assert full.losses.lost == writer.lost > 0
