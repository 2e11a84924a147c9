"""The spool of a host that is gone, shipped from another: its folder, and its second copy."""

from __future__ import annotations

import io
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.errors import AnalyticsUnavailableError
from analytics.request_log.columns import Columns
from analytics.request_log.record import Outcome, SpoolEntry
from analytics.shipper.loop import Shipper, insert_into_store
from analytics.shipper.second_copy import SecondCopy, piece_of
from analytics.spool.writer import SpoolWriter
from core.storage import Place, StorageError, place_of
from tests.factories.analytics import make_entry, uuid7
from tests.fakes.object_storage import BUCKET, object_storage
from tests.migrated import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("clickhouse")


def adopt(place: Path | str) -> str:
    out = io.StringIO()
    call_command("ship_records", spool=str(place), stdout=out)
    return out.getvalue().strip()


def written(spool: Path, count: int) -> list[SpoolEntry]:
    """Returns entries whose records wait in the spool of a host that has died."""
    entries = [make_entry(b'{"messages": []}', b"{}") for _ in range(count)]
    writer = SpoolWriter(spool)
    for entry in entries:
        writer.append(entry)
    writer.close()
    return entries


def stored() -> list[str]:
    return sorted(str(identifier) for (identifier,) in client.execute("SELECT request_id FROM requests"))


def ids(entries: list[SpoolEntry]) -> list[str]:
    return sorted(entry.record.request_id for entry in entries)


def requests_in_rollups() -> int:
    [(count,)] = client.execute("SELECT sum(requests) FROM requests_daily")
    return int(count)


def test_folder__of_a_dead_host__is_shipped_once(spool: Path) -> None:
    entries = written(spool, 5)

    assert adopt(spool) == "5 records shipped"
    assert adopt(spool) == "0 records shipped"

    assert stored() == ids(entries)
    assert requests_in_rollups() == 5


def test_folder__whose_batch_was_sent_without_an_answer__is_shipped_once(spool: Path) -> None:
    entries = written(spool, 3)

    def lose_the_answer(columns: Columns, token: str) -> None:
        insert_into_store(columns, token)
        shipper.stop.set()
        raise AnalyticsUnavailableError("The answer is lost.")

    shipper = Shipper(spool, insert=lose_the_answer)
    shipper.drain()
    shipper.close()

    assert adopt(spool) == "3 records shipped"
    assert stored() == ids(entries)
    assert requests_in_rollups() == 3


def test_folder__with_requests_in_flight__records_them_as_interrupted(spool: Path) -> None:
    script = """
import sys
from pathlib import Path
from analytics.spool.inflight import InflightRequest, InflightTable
table = InflightTable(Path(sys.argv[1]))
table.begin(InflightRequest(sys.argv[2], sys.argv[3], int(sys.argv[4]), 1, "m", False, "", ""))
print("begun", flush=True)
sys.stdin.read()
"""
    ts = time.time_ns() // 1000
    request, project = uuid7(ts), str(uuid4())
    words = [sys.executable, "-c", script, str(spool), request, project, str(ts)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"begun\n"
        with pytest.raises(CommandError, match=r"a process still writes to .*: this host is not gone"):
            adopt(spool)
        host.send_signal(signal.SIGKILL)

    assert adopt(spool) == "1 records shipped"
    assert client.execute("SELECT request_id, outcome FROM requests") == [(UUID(request), Outcome.INTERRUPTED)]


@pytest.mark.parametrize("name", ["absent", "."])
def test_folder__that_is_no_spool__is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match=r"there is no such folder\.|this is no spool: give the folder"):
        adopt(tmp_path / name)


def test_folder__of_a_living_shipper__is_refused(spool: Path) -> None:
    shipper = Shipper(spool)
    with pytest.raises(CommandError, match="Another shipper"):
        adopt(spool)
    shipper.close()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with object_storage() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield place_of(f"s3://{BUCKET}/spools").within("host-1")


def test_second_copy__to_what_is_no_place__is_refused(spool: Path, settings: Settings) -> None:
    settings.SPOOL_DIR, settings.SPOOL_COPY = spool, "ftp://host/spools"

    with pytest.raises(CommandError, match="SPOOL_COPY: ftp://host/spools: give a folder, or s3://bucket/prefix"):
        call_command("ship_records", drain=True)


def test_second_copy__of_a_lost_host__is_shipped_once_and_removed(spool: Path, bucket: Place) -> None:
    shipped = written(spool, 2)
    shipper = Shipper(spool)
    shipper.drain()
    waiting = written(spool, 3)
    copy = SecondCopy(spool, bucket, seconds=60)
    copy.look()
    copy.look()
    # The host stores a last batch that its copy does not know of, and is lost with its disk.
    shipper.drain()
    shipper.close()
    shutil.rmtree(spool)

    assert adopt(bucket.address) == "0 records shipped"
    assert stored() == ids(shipped + waiting)
    assert bucket.sizes("") == {}


def test_second_copy__of_a_host_that_comes_back_with_an_empty_disk__stays(
    spool: Path, bucket: Place, caplog: pytest.LogCaptureFixture
) -> None:
    lost = written(spool, 3)
    copy = SecondCopy(spool, bucket, seconds=60)
    copy.look()
    copy.look()
    shutil.rmtree(spool)
    bucket.write("notes of somebody.txt", b"")
    fresh = written(spool, 2)

    copy = SecondCopy(spool, bucket, seconds=60)
    copy.look()
    copy.look()

    [former] = [word.partition("=")[2] for word in caplog.text.split() if word.startswith("place=")]
    bucket.delete("notes of somebody.txt")
    with pytest.raises(CommandError, match="has pieces of several spools: give one of them"):
        adopt(bucket.address)
    assert adopt(former) == "3 records shipped"
    assert adopt(spool) == "2 records shipped"
    assert stored() == ids(lost + fresh)


@pytest.mark.parametrize(
    "name", ["notes.txt", "../../x/0-4", "../1-2-3.seg/0-4", "ab/../1-2-3.seg/0-4", "1-2-3.seg/0-4/5"]
)
def test_piece__of_another_name__is_none(name: str) -> None:
    assert piece_of(name) is None


def test_second_copy__with_an_object_of_another_name__is_refused(bucket: Place) -> None:
    bucket.write("notes.txt", b"")
    with pytest.raises(CommandError, match=r"notes\.txt is no piece of a spool\."):
        adopt(bucket.address)


def test_second_copy__while_the_store_is_away__has_all_that_waits(spool: Path, bucket: Place) -> None:
    entries = written(spool, 4)
    copy = SecondCopy(spool, bucket, seconds=60)

    copy.look()
    assert bucket.sizes("") == {}
    copy.look()
    shutil.rmtree(spool)

    assert adopt(bucket.address) == "4 records shipped"
    assert stored() == ids(entries)
    assert requests_in_rollups() == 4
    with pytest.raises(CommandError, match="there is no second copy of a spool"):
        adopt(bucket.address)


def test_second_copy__begun_in_the_middle_of_a_segment__ships_the_rest(spool: Path, bucket: Place) -> None:
    writer, shipper = SpoolWriter(spool), Shipper(spool)
    first, second = make_entry(), make_entry()
    writer.append(first)
    shipper.drain()
    writer.append(second)
    copy = SecondCopy(spool, bucket, seconds=60)
    copy.look()
    copy.look()
    (piece,) = bucket.sizes("")
    shipper.close()
    writer.close()
    shutil.rmtree(spool)

    found = piece_of(piece)
    assert found is not None
    assert found.start > 0
    assert adopt(bucket.address) == "1 records shipped"
    assert stored() == ids([first, second])


def test_second_copy__once_the_store_has_the_records__is_removed(spool: Path, bucket: Place) -> None:
    written(spool, 3)
    copy = SecondCopy(spool, bucket, seconds=60)
    copy.look()
    copy.look()
    assert bucket.sizes("")
    shipper = Shipper(spool)
    shipper.drain()
    shipper.close()

    # A shipper that was started again finds the pieces of the one before.
    SecondCopy(spool, bucket, seconds=60).look()

    assert bucket.sizes("") == {}


def test_second_copy__storage_away__says_so_once_and_comes_back(
    spool: Path, bucket: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written(spool, 1)
    write = bucket.write
    away = threading.Event()
    away.set()
    tried: list[str] = []

    def unreliable(name: str, content: bytes) -> None:
        tried.append(name)
        if away.is_set():
            raise StorageError("the bucket does not answer.")
        write(name, content)

    monkeypatch.setattr(bucket, "write", unreliable)
    caplog.set_level("INFO", "analytics.second_copy")
    copy = SecondCopy(spool, bucket, seconds=0.01)
    copy.begin()
    wait_until(lambda: len(tried) > 3, what="some tries")
    away.clear()
    wait_until(lambda: len(bucket.sizes("")) == 1, what="the copy")
    wait_until(lambda: "second_copy.recovered" in caplog.text, what="the recovery")
    copy.close()

    assert caplog.text.count("second_copy.failed reason=the bucket does not answer.") == 1
