"""`python -m benchmarks.record` measures what the record of a request costs shipper and store. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from benchmarks import processes
from benchmarks.analytics_store import Store, store, wait_for_merges
from benchmarks.django_setup import positive_number, set_up_django
from benchmarks.targets.base import ROOT
from benchmarks.waiting import wait_until_shipped

if TYPE_CHECKING:
    from analytics.request_log.record import SpoolEntry

_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_TICK_SECONDS = 0.02
_MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of shipper and engine from the first record to the last row stored, the engine's from then until it
    was quiet, and the wall seconds until the last row was stored."""

    shipper: float
    inserts: float
    merges: float
    elapsed: float

    @property
    def engine(self) -> float:
        return self.inserts + self.merges


@dataclass(frozen=True, slots=True)
class TableRows:
    table: str
    inserts: int
    rows: int
    size: int
    parts: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of all rounds, as `--json` writes them. `record_bytes` and `text_bytes` are those of one record and
    of its texts in the spool."""

    requests: int
    batches: int
    shipper_seconds: float
    engine_seconds: float
    disk_bytes: int
    record_bytes: float
    text_bytes: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # A SIGTERM to the benchmark also ends its engine and its shipper.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with store(options.data) as measured:
        set_up_django(measured, SPOOL_DIR=str(measured.folder / "spool"))
        return _measure(options, measured)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=__doc__)
    parser.add_argument("--requests", type=positive_number, default=30_000, help="of each round (default 30,000)")
    parser.add_argument("--rounds", type=positive_number, default=3, help="into the same store (default 3)")
    parser.add_argument("--rate", type=int, default=0, help="requests a second; 0 spools all before the shipper begins")
    parser.add_argument("--same-texts", action="store_true", help="the texts of benchmarks.gateway, all the same")
    parser.add_argument("--texts", choices=("mixed", "ascii", "latin", "cjk"), default="mixed", help="their letters")
    parser.add_argument("--text-kilobytes", type=positive_number, help="of a request and its answer")
    parser.add_argument("--conversation", type=positive_number, default=1, help="turns, with --text-kilobytes")
    parser.add_argument("--without-texts", action="store_true", help="of projects that keep no texts")
    parser.add_argument("--json", type=Path, help="write the figures of all rounds to this file as well")
    parser.add_argument("--views", action="store_true", help="measure each view of `ingest` alone instead")
    parser.add_argument("--batch", type=positive_number, default=20_000, help="rows of one insert with --views")
    parser.add_argument("--data", type=Path, help="folder of the store; kept afterwards")
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace, measured: Store) -> int:
    from analytics.clickhouse.migrator import migrate
    from benchmarks.record_views import measure_views

    migrate()
    if options.views:
        lines = measure_views(measured, options.requests, batch_rows=options.batch, same_texts=options.same_texts)
        for line in lines:
            print(line, flush=True)
        return 0
    costs, before, requests = [], _stored(), 0
    with _shipper(measured.folder) as shipper:
        for name, made in _rounds(options):
            costs.append(_ship(measured, shipper, made, options.rate))
            print(_line(name, costs[-1], len(made)), flush=True)
            requests += len(made)
    if options.json:
        options.json.write_bytes(msgspec.json.encode(_figures(costs, made, requests)))
    total = Cost(
        *(sum(values) for values in zip(*((c.shipper, c.inserts, c.merges, c.elapsed) for c in costs), strict=True))
    )
    print(_line("all rounds", total, requests))
    print("", *_lines(_tables(), requests), sep="\n")
    return 0 if _stored() - before == requests else 1


def _rounds(options: argparse.Namespace) -> Iterator[tuple[str, Sequence[SpoolEntry]]]:
    from benchmarks.record_entries import conversations, entries

    for number in range(options.rounds):
        name = f"round {number + 1}"
        if options.text_kilobytes is None:
            texts = {"same_texts": options.same_texts, "texts": not options.without_texts, "kind": options.texts}
            yield name, entries(options.requests, seed=number, **texts)
            continue
        turns = options.conversation
        talks = conversations(
            options.requests // turns, seed=number, kilobytes=options.text_kilobytes, turns=turns, kind=options.texts
        )
        # One turn after the other: a client sends the next one when it has the answer.
        for turn, made in enumerate(talks, 1):
            yield f"{name}, turn {turn}", made


def _figures(costs: Sequence[Cost], made: Sequence[SpoolEntry], requests: int) -> Figures:
    from analytics.spool.frames import encode_meta

    tables = _tables()
    return Figures(
        requests=requests,
        batches=max(one.inserts for one in tables if one.table == "requests"),
        shipper_seconds=sum(one.shipper for one in costs),
        engine_seconds=sum(one.engine for one in costs),
        disk_bytes=sum(one.size for one in tables),
        record_bytes=sum(len(encode_meta(one.record)) for one in made) / len(made),
        text_bytes=sum(len(one.request) + len(one.response) for one in made) / len(made),
    )


def _line(name: str, cost: Cost, requests: int) -> str:
    each = _MICROSECONDS / requests
    return (
        f"{name}: shipper {cost.shipper * each:.0f} µs, engine {cost.engine * each:.0f} µs a request "
        f"(inserts {cost.inserts * each:.0f}, afterwards {cost.merges * each:.0f}); "
        f"{requests / (cost.shipper + cost.engine):,.0f} rows per second and core; "
        f"{requests / cost.elapsed:,.0f} rows per second stored"
    )


@contextmanager
def _shipper(folder: Path) -> Iterator[psutil.Process]:
    process = processes.start([sys.executable, "manage.py", "ship_records"], log=folder / "shipper.log", folder=ROOT)
    try:
        lock, deadline = folder / "spool" / "shipper.lock", time.monotonic() + _START_SECONDS
        while not (lock.exists() and lock.read_text().strip() == str(process.pid)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The shipper did not start: see {folder / 'shipper.log'}")
            time.sleep(_POLL_SECONDS)
        yield psutil.Process(process.pid)
    finally:
        processes.stop(process)


def _ship(measured: Store, shipper: psutil.Process, made: Sequence[SpoolEntry], rate: int) -> Cost:
    wait_for_merges()
    before = processes.cpu_seconds([shipper]), measured.cpu_seconds()
    started = _spool(measured.folder / "spool", shipper, made, rate)
    wait_until_shipped(measured.folder / "spool")
    elapsed = time.monotonic() - started
    stored = processes.cpu_seconds([shipper]), measured.cpu_seconds()
    wait_for_merges()
    return Cost(stored[0] - before[0], stored[1] - before[1], measured.cpu_seconds() - stored[1], elapsed)


def _spool(directory: Path, shipper: psutil.Process, made: Sequence[SpoolEntry], rate: int) -> float:
    from analytics.spool.writer import SpoolWriter

    started = time.monotonic()
    writer = SpoolWriter(directory)
    if rate:
        for number, entry in enumerate(made):
            while time.monotonic() - started < number / rate:
                time.sleep(_TICK_SECONDS)
            writer.append(entry)
    else:
        shipper.suspend()
        for entry in made:
            writer.append(entry)
        started = time.monotonic()
        shipper.resume()
    writer.close()
    return started


def _stored() -> int:
    from analytics.clickhouse import client

    [(count,)] = client.execute("SELECT count() FROM requests")
    return int(count)


def _tables() -> list[TableRows]:
    """A table numbers the blocks that inserts bring, and merges keep the numbers."""
    from analytics.clickhouse import client

    found = client.execute(
        "SELECT table, max(max_block_number), sum(rows), sum(bytes_on_disk), count() FROM system.parts WHERE active"
        " AND database = currentDatabase() AND table != 'schema_migrations' GROUP BY table"
        " ORDER BY sum(rows) DESC, table"
    )
    return [TableRows(*row) for row in found]


def _lines(tables: Sequence[TableRows], requests: int) -> Iterator[str]:
    yield "| Table | inserts | rows per request | bytes on disk per request | parts left |"
    yield "|---|---|---|---|---|"
    for one in tables:
        each = f"{one.rows / requests:.3f} | {one.size / requests:.1f}"
        yield f"| {one.table} | {one.inserts} | {each} | {one.parts} |"


if __name__ == "__main__":
    sys.exit(main())
