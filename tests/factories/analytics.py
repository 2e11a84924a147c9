from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from analytics.clickhouse import client
from analytics.request_log.columns import INGESTED, Columns, values_of
from analytics.request_log.record import Outcome, RequestRecord, SpoolEntry
from analytics.shipper.columns import to_columns
from analytics.shipper.loop import Shipper
from analytics.spool.frames import encode_meta
from analytics.spool.reader import Frame
from analytics.spool.writer import SpoolWriter

_latest = 0


def uuid7(microseconds: int) -> str:
    """Sorts by time, as the gateway's request ids do (RFC 9562, 5.7)."""
    bits = (microseconds // 1000 & (1 << 48) - 1) << 80 | 7 << 76 | 2 << 62 | uuid4().int & (1 << 62) - 1
    return str(UUID(int=bits))


def _now() -> int:
    """Returns microseconds, later with every call and never in the future: a range that ends now includes them."""
    global _latest
    _latest = max(_latest + 1, time.time_ns() // 1000)
    return _latest


def make_record(**values: Any) -> RequestRecord:
    ts = values.setdefault("ts", _now())
    defaults: dict[str, Any] = {
        "request_id": uuid7(ts),
        "project_id": str(uuid4()),
        "outcome": Outcome.SUCCESS,
        "status_code": 200,
        "provider": "openai",
        "model": "gpt-4o-mini",
        "requested_model": "gpt-4o-mini",
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "cost_known": True,
        "cost_usd": "0.0000048000",
        "latency_ms": 250,
    }
    return RequestRecord(**{**defaults, **values})


def make_entry(request: bytes = b"", response: bytes = b"", **values: Any) -> SpoolEntry:
    return SpoolEntry(make_record(**values), request, response)


def ingested(entry: SpoolEntry) -> dict[str, Any]:
    frame = Frame(0, 0, encode_meta(entry.record), entry.request, entry.response)
    (row,) = rows_of(to_columns([frame]))
    return dict(zip(INGESTED, row, strict=True))


def rows_of(columns: Columns) -> list[tuple[Any, ...]]:
    return list(zip(*(values_of(columns, name) for name in INGESTED), strict=True))


def store(directory: Path, *entries: SpoolEntry) -> None:
    writer = SpoolWriter(directory)
    for entry in entries:
        writer.append(entry)
    writer.close()
    shipper = Shipper(directory)
    shipper.drain()
    shipper.close()


def store_as_of_then(directory: Path, *entries: SpoolEntry) -> None:
    store(directory, *entries)
    change = "recorded_at = addMilliseconds(ts, latency_ms) WHERE request_id IN {ids:Array(UUID)}"
    ids = [entry.record.request_id for entry in entries]
    client.execute(f"ALTER TABLE requests UPDATE {change}", {"ids": ids}, settings={"mutations_sync": 1})
