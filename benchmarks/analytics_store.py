from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks import processes
from benchmarks.targets.base import ROOT

_START_SECONDS = 120.0
_MERGE_SECONDS = 180.0
_POLL_SECONDS = 0.2
# Caches that remember which granules matched the same condition before would change the measurement.
_OPTIONS = "use_query_condition_cache=0&use_query_cache=0"


@dataclass(frozen=True, slots=True)
class Store:
    folder: Path
    url: str
    engine: psutil.Process | None

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds([self.engine]) if self.engine is not None else 0.0

    def peak_megabytes(self) -> float | None:
        if self.engine is None:
            return None
        for line in Path(f"/proc/{self.engine.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
        return None


@contextmanager
def store(data: Path | None) -> Iterator[Store]:
    folder = (data or Path(tempfile.mkdtemp(prefix="bench-analytics-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        given = os.environ.get("CLICKHOUSE_URL")
        if given:
            yield Store(folder, _with_options(given), None)
        else:
            with _engine(folder) as running:
                yield running
    finally:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _engine(folder: Path) -> Iterator[Store]:
    address = folder / "clickhouse.url"
    address.unlink(missing_ok=True)
    command = [sys.executable, "manage.py", "analytics_engine", "--data", str(folder / "clickhouse")]
    process = processes.start(
        [*command, "--url-file", str(address)],
        log=folder / "engine.log",
        environment={"VAR_DIR": str(folder)},
        folder=ROOT,
    )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not address.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The engine did not start: see {folder / 'engine.log'}")
            time.sleep(_POLL_SECONDS)
        yield Store(folder, _with_options(address.read_text().strip()), psutil.Process(process.pid))
    finally:
        processes.stop(process)


def _with_options(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{_OPTIONS}"


def wait_for_merges() -> float:
    """Waits until the store has no merge in progress, which would disturb the measurement; returns the seconds."""
    from analytics.clickhouse import client

    started = time.monotonic()
    quiet = 0
    while quiet < 5 and time.monotonic() - started < _MERGE_SECONDS:
        [(running,)] = client.execute("SELECT count() FROM system.merges")
        quiet = 0 if running else quiet + 1
        time.sleep(_POLL_SECONDS)
    return time.monotonic() - started


def merge_as_time_would() -> None:
    """Merges each partition that is no longer written into one part.

    The tables do so after two hours to a day (`min_age_to_force_merge_seconds`), too long for a new history. Each
    table's newest partition stays as it is: a busy store continues to write it.
    """
    from analytics.clickhouse import client

    found = client.execute(
        "SELECT table, partition_id FROM system.parts WHERE active AND database = currentDatabase()"
        " AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase()"
        " AND create_table_query LIKE '%min_age_to_force_merge_seconds%')"
        " GROUP BY table, partition_id HAVING count() > 1 ORDER BY table, partition_id"
    )
    newest = dict(found)
    for table, partition in found:
        if newest[table] != partition:
            client.execute(f"OPTIMIZE TABLE {table} PARTITION ID '{partition}' FINAL")


def table_sizes() -> list[tuple[str, int, int]]:
    from analytics.clickhouse import client

    found = client.execute(
        "SELECT table, sum(rows), sum(bytes_on_disk) AS bytes FROM system.parts"
        " WHERE active AND database = currentDatabase() GROUP BY table ORDER BY bytes DESC"
    )
    return [(str(table), int(rows), int(size)) for table, rows, size in found]
