"""An export as it came in: the rows of its good records, and how many others there were and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from analytics.telemetry import logs, metrics, spans
from analytics.telemetry.body import Encoding
from analytics.telemetry.errors import LargeExportError, MalformedExportError, RejectedRecord
from analytics.telemetry.origin import Origin
from analytics.telemetry.records import Form, Located, Record, from_json, from_protobuf

_REASONS_TOLD = 3
# A resource stands once in an export and in every one of its rows in the table.
MOST_STORED_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class Signal(Generic[Record]):
    """`name` is the last part of the path; `rejected` the field of the answer that counts what was not taken."""

    name: str
    form: Form[Record]
    rejected: str
    table: str
    columns: tuple[str, ...]
    to_row: Callable[[Origin, Record], tuple[Any, ...]]
    weigh: Callable[[Record], int] = lambda record: 1


@dataclass(frozen=True)
class Export:
    """`size` is what the records take in the store, about, in bytes."""

    rows: list[tuple[Any, ...]]
    size: int
    rejected: int
    message: str


TRACES = Signal("traces", spans.FORM, "rejectedSpans", spans.TABLE, spans.COLUMNS, spans.span_row)
LOGS = Signal("logs", logs.FORM, "rejectedLogRecords", logs.TABLE, logs.COLUMNS, logs.log_row)
METRICS = Signal(
    "metrics", metrics.FORM, "rejectedDataPoints", "", (), metrics.metric_row, metrics.number_of_data_points
)
_SIGNALS: tuple[Signal[Any], ...] = (TRACES, LOGS, METRICS)


def read_export(signal: Signal[Record], encoding: Encoding, body: bytes) -> Export:
    """Raises MalformedExportError, LargeExportError. A record that cannot be stored is counted, the rest are kept."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    reasons: Counter[str] = Counter()
    for origin, record in _located(signal, encoding, body):
        if isinstance(record, RejectedRecord):
            reasons[str(record)] += 1
            continue
        try:
            rows.append(signal.to_row(origin, record))
            size = _checked(size + origin.size + record.ByteSize())
        except RejectedRecord as rejection:
            reasons[str(rejection)] += signal.weigh(record)
    return Export(rows, size, sum(reasons.values()), _message(signal, reasons, stored=len(rows)))


def _checked(size: int) -> int:
    if size > MOST_STORED_BYTES:
        message = (
            f"Records with their resources and scopes take more than {MOST_STORED_BYTES} bytes. Send smaller batches."
        )
        raise LargeExportError(message)
    return size


def _located(signal: Signal[Record], encoding: Encoding, body: bytes) -> Iterator[Located[Record]]:
    if encoding is Encoding.PROTOBUF:
        return from_protobuf(signal.form, body)
    return from_json(signal.form, body, refuse_others=_refuse_others(signal))


def _refuse_others(signal: Signal[Any]) -> Callable[[Mapping[str, Any]], None]:
    def refuse(document: Mapping[str, Any]) -> None:
        # Unknown fields are to be ignored, but nothing is dropped under a 200 without a word.
        for other in _SIGNALS:
            if other is not signal and other.form.resources in document:
                raise MalformedExportError(f"{other.form.resources}: belongs to /v1/{other.name}.")

    return refuse


def _message(signal: Signal[Any], reasons: Counter[str], *, stored: int) -> str:
    told = "; ".join(f"{count} of them: {reason}" for reason, count in reasons.most_common(_REASONS_TOLD))
    if len(reasons) > _REASONS_TOLD:
        told += "; …"
    if reasons and not stored and signal.table:
        # Signals have the same field numbers: another one's export is read as records without ids and times.
        told += f". Is this an export of {signal.name}?"
    return told
