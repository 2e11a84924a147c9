"""`python -m benchmarks.inserters` measures what the small batches of many hosts cost the store, with inserters and
without. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil

from benchmarks import processes, report
from benchmarks.analytics_store import Store, store, wait_for_merges
from benchmarks.django_setup import positive_number, set_up_django
from benchmarks.redis_server import redis_server
from benchmarks.targets.base import ROOT
from benchmarks.waiting import wait_until

_START_SECONDS = 60.0
_GIVE_UP_SECONDS = 300.0
_TICK_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU in cores while the hosts wrote, and the seconds from a record to the insert with its row."""

    rows: int
    engine: float
    inserters: float
    hosts: float
    p50: float
    p95: float
    longest: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        redis_url = stack.enter_context(redis_server())
        measured = stack.enter_context(store(None))
        # All hosts are in this process, each with a connection of its own.
        set_up_django(measured, REDIS_URL=f"{redis_url}?max_connections={2 * options.hosts + 10}")
        from analytics.clickhouse.migrator import migrate

        migrate()
        if options.at_once:
            return _insert_at_once(options.at_once)
        found = _measure(measured, options)
    lines = (
        f"{options.hosts} hosts of a row every {options.every:g} s, {options.inserters} inserters, {options.seconds} s",
        f"engine {found.engine:.2f} cores, inserters {found.inserters:.2f}, shippers {found.hosts:.2f}",
        f"{found.rows} rows, inserted after {found.p50:.1f} s (p50), {found.p95:.1f} s (p95), {found.longest:.1f} s",
        report.machine(),
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inserters", description=__doc__)
    parser.add_argument("--hosts", type=positive_number, default=300, help="shippers (default 300)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two records of a host (default 2)")
    parser.add_argument("--seconds", type=positive_number, default=60, help="of writing (default 60)")
    parser.add_argument("--inserters", type=int, default=1, help="0: each host inserts its own (default 1)")
    parser.add_argument("--at-once", type=int, default=0, help="insert so many single rows at once instead")
    return parser.parse_args(arguments)


def _measure(measured: Store, options: argparse.Namespace) -> Measured:
    from analytics.clickhouse import client
    from analytics.shipper.inserting import exchange
    from analytics.shipper.inserting.handing_over import HandingOver
    from analytics.shipper.loop import Shipper

    with ExitStack() as stack:
        inserters = [_inserter(stack, measured.folder) for _ in range(options.inserters)]
        if inserters:
            wait_until(lambda: bool(exchange.inserter_lives()), "no inserter", seconds=_START_SECONDS)
        spools = [measured.folder / "spools" / str(number) for number in range(options.hosts)]
        shippers = [Shipper(spool, handing_over=HandingOver()) for spool in spools]
        threads = [threading.Thread(target=one.run, daemon=True) for one in shippers]
        for thread in threads:
            thread.start()
        before = measured.cpu_seconds(), processes.cpu_seconds(inserters), time.process_time()
        began = time.monotonic()
        written = _write(spools, options)
        spent = time.monotonic() - began
        after = measured.cpu_seconds(), processes.cpu_seconds(inserters), time.process_time()
        stored = "SELECT count() FROM requests"
        wait_until(
            lambda: client.execute(stored) == [(written,)], "rows are missing or double", seconds=_GIVE_UP_SECONDS
        )
        for shipper in shippers:
            shipper.stop.set()
        for thread in threads:
            thread.join()
    [waited] = client.execute(
        "SELECT count(), quantiles(0.5, 0.95, 1)(toFloat64(toUnixTimestamp64Milli(recorded_at))"
        " - toFloat64(toUnixTimestamp64Micro(ts)) / 1000) FROM requests"
    )
    cores = [(late - early) / spent for early, late in zip(before, after, strict=True)]
    return Measured(waited[0], *cores, *(one / 1000 for one in waited[1]))


def _inserter(stack: ExitStack, folder: Path) -> psutil.Process:
    started = processes.start([sys.executable, "manage.py", "insert_batches"], log=folder / "inserter.log", folder=ROOT)
    stack.callback(processes.stop, started)
    return psutil.Process(started.pid)


def _write(spools: Sequence[Path], options: argparse.Namespace) -> int:
    """Each host writes at its own time, so that records come evenly."""
    from analytics.spool.writer import SpoolWriter
    from benchmarks.record_entries import entries

    writers = [SpoolWriter(spool) for spool in spools]
    began, written = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < options.seconds:
        while written < elapsed / options.every * len(writers):
            [entry] = entries(1, seed=written)
            writers[written % len(writers)].append(entry)
            written += 1
        time.sleep(_TICK_SECONDS)
    for writer in writers:
        writer.close()
    return written


def _insert_at_once(number: int) -> int:
    """Each thread is a host, which tries again as a shipper does."""
    from analytics.clickhouse import client
    from analytics.clickhouse.connections import connections
    from analytics.errors import AnalyticsLimitError
    from analytics.shipper.columns import to_columns
    from analytics.spool.frames import encode_meta
    from analytics.spool.reader import Frame
    from benchmarks.record_entries import entries

    connections()._room = threading.BoundedSemaphore(number)
    barrier = threading.Barrier(number)

    def insert(seed: int) -> int:
        [entry] = entries(1, seed=seed)
        columns = dict(to_columns([Frame(0, 0, encode_meta(entry.record), entry.request, entry.response)]))
        columns.pop("shared_texts", None)
        token, refused = uuid4().hex, 0
        barrier.wait()
        while True:
            try:
                client.insert_columns("ingest", columns, token=token)
            except AnalyticsLimitError:
                refused += 1
                time.sleep(0.2)
            else:
                return refused

    with ThreadPoolExecutor(number) as pool:
        tries = list(pool.map(insert, range(number)))
    wait_for_merges()
    [(rows,)] = client.execute("SELECT count() FROM requests")
    sys.stdout.write(f"{number} rows at once: {sum(map(bool, tries))} refused at first, {rows} stored\n")
    return 0 if rows == number else 1


if __name__ == "__main__":
    sys.exit(main())
