"""Records pass from the shipper to the exporter once, wherever the shipper is killed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from analytics.request_log.record import TELEMETRY
from analytics.shipper.loop import Shipper
from analytics.spool import handover
from analytics.spool.handover import handed, read_lost, want
from analytics.spool.writer import SpoolWriter
from analytics.trace_export.batches import read_records
from tests.factories.analytics import make_entry

PROJECT = str(uuid4())


class Killed(Exception):
    """Stands for the end of the process at this step."""


def killed(*_: Any, **__: Any) -> None:
    raise Killed


@pytest.fixture
def wanted(spool: Path) -> None:
    want(spool, {PROJECT: False})


def write(spool: Path, *entries: Any) -> None:
    writer = SpoolWriter(spool)
    for entry in entries:
        writer.append(entry)
    writer.close()


def ship(spool: Path, sabotage: Callable[[Shipper], None] = lambda _: None) -> None:
    """Runs one shipper until it has shipped everything, or to where it is sabotaged."""
    shipper = Shipper(spool, insert=lambda rows, token: None)
    try:
        sabotage(shipper)
        shipper.drain()
    except Killed:
        pass
    finally:
        shipper.close()


def received(spool: Path) -> list[str]:
    """Returns the ids of all records that were handed over."""
    return [record.request_id for path in handed(spool) for _, record in read_records(path).get(PROJECT, [])]


def test_records__of_projects_that_export__without_bodies_and_telemetry(spool: Path, wanted: None) -> None:
    mine = make_entry(b'{"secret": 1}', b"{}", project_id=PROJECT)
    write(spool, mine, make_entry(), make_entry(project_id=PROJECT, source=TELEMETRY))

    ship(spool)

    assert received(spool) == [mine.record.request_id]
    assert all(b"secret" not in path.read_bytes() for path in handed(spool))


def test_records__of_a_project_that_includes_content__with_bodies_up_to_a_bound(spool: Path) -> None:
    want(spool, {PROJECT: True})
    large = b'{"a": "' + b"x" * handover.MAX_CONTENT_BYTES + b'"}'
    write(spool, make_entry(b'{"q": 1}', b'{"a": 2}', project_id=PROJECT), make_entry(large, b"{}", project_id=PROJECT))

    ship(spool)

    [path] = handed(spool)
    bodies = [(frame.request, frame.response) for frame, _ in read_records(path)[PROJECT]]
    assert bodies == [(b'{"q": 1}', b'{"a": 2}'), (b"", b"")]


def test_records__nobody_exports__no_file(spool: Path) -> None:
    write(spool, make_entry(project_id=PROJECT))
    ship(spool)
    assert handed(spool) == []
    want(spool, {})
    write(spool, make_entry(project_id=PROJECT))
    ship(spool)
    assert handed(spool) == []


KILLS: dict[str, Callable[[Shipper], None]] = {
    "before the insert": lambda shipper: setattr(shipper, "_insert", killed),
    "before the handover": lambda shipper: setattr(shipper._handover, "prepare", killed),
    "before the end is saved": lambda shipper: setattr(shipper, "_commit", killed),
    "before the name is given": lambda shipper: setattr(shipper._handover, "publish", killed),
    "before shipped segments are removed": lambda shipper: setattr(shipper, "_delete_finished", killed),
}


@pytest.mark.parametrize("point", KILLS)
def test_records__shipper_killed__each_handed_over_once(spool: Path, wanted: None, point: str) -> None:
    entries = [make_entry(project_id=PROJECT) for _ in range(5)]
    write(spool, *entries)

    for _ in range(3):
        ship(spool, KILLS[point])
    ship(spool)

    assert received(spool) == [entry.record.request_id for entry in entries]
    assert not list((spool / "export" / "handed").glob("*.new"))


def test_records__disk_refuses_the_file__shipped_all_the_same_and_counted(
    spool: Path, wanted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write(spool, make_entry(project_id=PROJECT), make_entry(project_id=PROJECT))
    with monkeypatch.context() as patch:
        patch.setattr(handover, "write", refuse)
        ship(spool)

    assert not list(spool.glob("*.seg"))
    assert (received(spool), read_lost(spool).records) == ([], 2)
    assert read_lost(spool).last > 0


def test_records__exporter_is_behind__shipped_all_the_same_and_counted(
    spool: Path, wanted: None, settings: Settings
) -> None:
    write(spool, make_entry(project_id=PROJECT))
    ship(spool)
    settings.TRACE_EXPORT_BYTES = 10
    for _ in range(2):
        write(spool, make_entry(project_id=PROJECT))
        ship(spool)

    assert len(received(spool)) == 1
    assert read_lost(spool).records == 2


def test_folder_bytes__file_removed_since_the_listing__not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_bytes(b"1234")
    (tmp_path / "gone").write_bytes(b"5")
    scan = os.scandir

    @contextmanager
    def listing(folder: Path) -> Iterator[list[os.DirEntry[str]]]:
        with scan(folder) as entries:
            found = list(entries)
        (folder / "gone").unlink()
        yield found

    monkeypatch.setattr(os, "scandir", listing)
    assert handover.folder_bytes(tmp_path) == 4


def test_end_is_not_saved__full_disk_then_room__handed_over_once(spool: Path, wanted: None) -> None:
    entry = make_entry(project_id=PROJECT)
    write(spool, entry)
    shipper = Shipper(spool, insert=lambda rows, token: None)
    commit, failures = shipper._commit, [OSError(errno.ENOSPC, "full"), OSError(errno.ENOSPC, "full")]

    def refusing(plan: Any) -> None:
        if failures:
            raise failures.pop()
        commit(plan)

    shipper._commit = refusing  # type: ignore[method-assign]  # the disk of this test
    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            shipper.ship_batch()
    shipper.drain()
    shipper.close()

    assert received(spool) == [entry.record.request_id]
