"""Measures what each view of `ingest` and `ingest_figures` costs: the same rows go through a table with it alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.analytics_store import Store, wait_for_merges

_PROBE = "ingest_probe"
_NO_VIEW = "(no view: receiving rows)"


def measure_views(measured: Store, count: int, *, batch_rows: int, same_texts: bool) -> Iterator[str]:
    """Yields a line for each view with the engine's CPU for each row of `ingest` and for each batch, merges included.
    The cost without any view comes first and is in no line of a view."""
    from analytics.clickhouse import client

    batches = _batches(count, batch_rows, same_texts=same_texts)

    def line(name: str, seconds: float) -> str:
        return f"{name}: {seconds / count * 1e6:.1f} µs a row, {seconds / len(batches) * 1e3:.1f} ms a batch"

    client.execute(f"CREATE TABLE {_PROBE} AS ingest ENGINE = Null")
    _cost(measured, batches, "warm-up")
    without = _cost(measured, batches, _NO_VIEW)
    yield line(_NO_VIEW, without)
    views = client.execute(
        "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase()"
        " AND engine = 'MaterializedView' AND match(as_select, '[.]ingest(_figures)? AS i')"
        " AND name != 'ingest_figures_mv'"
        " ORDER BY name"
    )
    for name, definition in views:
        # The view fills its own table, so that the views and merges behind that are in its cost.
        probe = re.sub(r"\.ingest(_figures)?\b", f".{_PROBE}", definition).replace(f".{name} ", f".{name}_probe ", 1)
        client.execute(probe)
        alone = _cost(measured, batches, name) - without
        client.execute(f"DROP TABLE {name}_probe")
        yield line(name, alone)
    client.execute(f"DROP TABLE {_PROBE}")


def _cost(measured: Store, batches: Sequence[Mapping[str, Sequence[Any]]], name: str) -> float:
    from analytics.clickhouse import client

    wait_for_merges()
    before = measured.cpu_seconds()
    for number, columns in enumerate(batches):
        client.insert_columns(_PROBE, columns, token=f"{name}.{number}")
    wait_for_merges()
    return measured.cpu_seconds() - before


def _batches(count: int, batch_rows: int, *, same_texts: bool) -> list[Mapping[str, Sequence[Any]]]:
    from analytics.shipper.columns import to_columns
    from analytics.spool import names
    from analytics.spool.reader import read_stretch
    from analytics.spool.writer import SpoolWriter
    from benchmarks.record_entries import entries

    with TemporaryDirectory(prefix="bench-record-") as folder:
        directory = Path(folder)
        writer = SpoolWriter(directory, reserve_bytes=0)
        for entry in entries(count, seed=0, same_texts=same_texts):
            writer.append(entry)
        writer.close()
        frames = [
            frame
            for segment in names.list_files(directory, names.SEGMENT)
            for frame in read_stretch(segment, 0, finished=True).frames
        ]
    return [to_columns(frames[start : start + batch_rows]) for start in range(0, len(frames), batch_rows)]
