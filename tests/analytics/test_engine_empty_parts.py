"""A merged part that a full disk has left without content costs no row: the next engine reads what it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.clickhouse.engine.chdb_connection import EXIT_BROKEN
from tests.analytics.engine_process import EngineProcess, running_engine
from tests.services import START_SECONDS
from tests.small_disk import small_disk
from tests.waiting import wait_until

_ROWS = 3


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk that has little space."""
    with small_disk(tmp_path / "disk", 200 << 20) as disk:
        yield disk.path


def empty_a_merged_part(engine: EngineProcess) -> None:
    """Leaves a part of three inserts as a full disk does: with all of its files, which are empty."""
    with engine.client() as client:
        client.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
        for number in range(_ROWS):
            client.execute("INSERT INTO t VALUES", [(number,)])
        client.execute("OPTIMIZE TABLE t FINAL")
        [(path,)] = client.execute("SELECT path FROM system.parts WHERE table = 't' AND active")
    # The list of the files comes last: the engine may look at any time.
    for file in sorted(Path(path).iterdir(), key=lambda file: file.name == "checksums.txt"):
        file.write_bytes(b"")


def rows_of(engine: EngineProcess) -> int:
    with engine.client() as client:
        [(count,)] = client.execute("SELECT count() FROM t WHERE n + 1 > 0")
    return int(count)


def test_merged_part__empty__engine_ends_by_itself_and_the_next_has_every_row(folder: Path) -> None:
    with running_engine(folder / "data") as engine:
        empty_a_merged_part(engine)
        wait_until(lambda: engine.process.poll() is not None, seconds=START_SECONDS, what="the engine to end")
        assert engine.process.returncode == EXIT_BROKEN
        assert "engine.empty_parts" in engine.log()

    with running_engine(folder / "data") as engine:
        assert rows_of(engine) == _ROWS
        assert engine.stop() == 0


def test_merged_part__empty_at_an_orderly_stop__its_sources_are_not_removed(tmp_path: Path) -> None:
    with running_engine(tmp_path / "data") as engine:
        empty_a_merged_part(engine)
        assert engine.stop() == EXIT_BROKEN

    with running_engine(tmp_path / "data") as engine:
        assert rows_of(engine) == _ROWS
