"""`python -m benchmarks.index_memory` measures the memory that the store needs to insert texts of several kinds, the
worst of them too, in batches as the shipper would make them. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import signal
import string
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from benchmarks import report as machine_report
from benchmarks.analytics_store import Store, store, wait_for_merges
from benchmarks.django_setup import positive_number, set_up_django

if TYPE_CHECKING:
    from analytics.spool.reader import Frame

_QUERY_BYTES = 1_000_000_000
# The engine may use more than a query, so that it is the query's limit that ends an insert.
_ENGINE_BYTES = 4_000_000_000
_ROW_BYTES = 60_000
_STEP = 1.25
# Each text is so long that it is a shared one.
_TABLES = ("shared_texts", "vocabulary")
_Kind = Callable[[random.Random, int], str]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index_memory", description=__doc__)
    parser.add_argument("--megabytes", type=positive_number, default=30, help="of texts of each kind (default 30)")
    parser.add_argument("--kinds", nargs="+", choices=_KINDS, default=list(_KINDS))
    options = parser.parse_args(arguments)
    # A SIGTERM to the benchmark also ends its engine.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    fits = True
    os.environ["CLICKHOUSE_ENGINE_BYTES"] = str(_ENGINE_BYTES)
    with store(None) as measured:
        set_up_django(measured, CLICKHOUSE_QUERY_SECONDS="600", CLICKHOUSE_QUERY_BYTES=str(_QUERY_BYTES))
        from analytics.clickhouse.migrator import migrate

        migrate()
        print(
            "| Texts | batch MB | needs MB | by its bytes | CPU ns a byte | on disk by its bytes: shared_texts |"
            " vocabulary |"
        )
        print("|---|---|---|---|---|---|---|")
        for kind in options.kinds:
            fits = _measure(measured, kind, options.megabytes * 1_000_000) and fits
    print("", machine_report.machine(), sep="\n")
    return 0 if fits else 1


def _measure(measured: Store, kind: str, size: int) -> bool:
    from analytics.shipper.columns import to_columns
    from analytics.shipper.index_memory import USUAL_COST, count_fitting

    frames = _frames(kind, size)
    batch = frames[: count_fitting(frames, _QUERY_BYTES)]
    while len(batch) > 1 and batch[-1].end > _QUERY_BYTES // USUAL_COST:
        batch.pop()
    columns, taken = to_columns(batch), batch[-1].end
    memory = _QUERY_BYTES
    cpu = _insert(measured, columns, memory)
    if cpu is None:
        print(f"| {kind} | {taken / 1e6:.1f} | more than {memory / 1e6:.0f} | | | | |", flush=True)
        return False
    needed, sizes = memory, _sizes()
    while _insert(measured, columns, memory) is not None:
        needed, memory = memory, int(memory / _STEP)
    disk = " | ".join(f"{sizes.get(table, 0) / taken:.2f}" for table in _TABLES)
    print(
        f"| {kind} | {taken / 1e6:.1f} | {memory / 1e6:.0f} to {needed / 1e6:.0f} | {needed / taken:.0f} |"
        f" {cpu / taken * 1e9:.0f} | {disk} |",
        flush=True,
    )
    return True


def _frames(kind: str, size: int) -> list[Frame]:
    from analytics.spool.frames import encode_meta
    from analytics.spool.reader import Frame
    from benchmarks.record_entries import entries

    chance, frames, end = random.Random(7), list[Any](), 0
    for entry in entries(max(size // _ROW_BYTES, 1), seed=7, texts=False):
        message = {"role": "user", "content": _KINDS[kind](chance, _ROW_BYTES)}
        body = json.dumps({"messages": [message]}, ensure_ascii=False).encode()
        meta = encode_meta(entry.record)
        frames.append(Frame(end, end + len(meta) + len(body), meta, body, b""))
        end = frames[-1].end
    return frames


def _insert(measured: Store, columns: Any, memory: int) -> float | None:
    from django.conf import settings

    from analytics.clickhouse import client
    from analytics.errors import AnalyticsLimitError
    from analytics.shipper.loop import insert_into_store

    for table in _TABLES:
        client.execute(f"TRUNCATE TABLE {table}")
    wait_for_merges()
    settings.CLICKHOUSE_QUERY_BYTES = memory
    before = measured.cpu_seconds()
    try:
        insert_into_store(columns, uuid4().hex)
    except AnalyticsLimitError:
        return None
    return measured.cpu_seconds() - before


def _sizes() -> dict[str, int]:
    from benchmarks.analytics_store import table_sizes

    return {table: size for table, _, size in table_sizes()}


def _prose(chance: random.Random, size: int) -> str:
    from benchmarks.record_entries import sentences, text

    known = sentences()
    found = ""
    while len(found) < size:
        found += text(chance, known)
    return found[:size]


def _random_words(chance: random.Random, size: int) -> str:
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(size // 9))


def _identifiers(chance: random.Random, size: int) -> str:
    letters = f"{string.ascii_letters}{string.digits}-_"
    return " ".join("".join(chance.choices(letters, k=22)) for _ in range(size // 23))


_KINDS: dict[str, _Kind] = {
    "prose": _prose,
    "single-letters": lambda chance, size: f"{chance.choice('abcd')} " * (size // 2),
    "random-words": _random_words,
    "identifiers": _identifiers,
    "hashes": lambda chance, size: " ".join(chance.randbytes(16).hex() for _ in range(size // 33)),
    "one-long-word": lambda chance, size: chance.randbytes(size // 2).hex(),
    "base64": lambda chance, size: base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
    "ideographs": lambda chance, size: "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(size // 3)),
}

if __name__ == "__main__":
    sys.exit(main())
