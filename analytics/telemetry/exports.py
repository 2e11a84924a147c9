from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analytics.telemetry.body import Encoding
from analytics.telemetry.errors import LargeExportError, MalformedExportError, RejectedPart, RejectedRecord
from analytics.telemetry.json_records import from_json
from analytics.telemetry.protobuf_records import from_protobuf
from analytics.telemetry.records import Located, Record
from analytics.telemetry.signals import SIGNALS, Signal

# A resource is sent once in an export, and stored in each of its rows.
MAX_STORED_BYTES = 128 * 1024 * 1024


_MAX_REASONS = 3


@dataclass
class _Reason:
    first: str
    count: int = 0


class Rejections:
    def __init__(self, signal: Signal[Any]) -> None:
        self._signal = signal
        self._reasons: dict[str, _Reason] = {}
        self._parts = 0
        self._others = 0

    @property
    def count(self) -> int:
        return sum(reason.count for reason in self._reasons.values())

    @property
    def nothing_readable(self) -> bool:
        return self._parts > 0 and not self._others

    def note(self, place: tuple[int, ...], record: Any, error: Exception | None = None) -> None:
        rejection = record if error is None else error
        if isinstance(rejection, RejectedPart):
            self._parts += 1
        else:
            self._others += 1
        why = str(rejection) if isinstance(rejection, RejectedRecord) else "the record is not readable"
        reason = self._reasons.setdefault(why, _Reason(self._named(place)))
        reason.count += 1 if error is None else self._signal.weigh(record)

    def message(self, *, stored: int = 0) -> str:
        by_count = sorted(self._reasons.items(), key=lambda item: -item[1].count)
        message = "; ".join(
            f"{reason.count} of them: {why} ({reason.first})" for why, reason in by_count[:_MAX_REASONS]
        )
        if len(by_count) > _MAX_REASONS:
            message += "; …"
        if by_count and not stored and self._others and self._signal.table:
            # All signals have the same field numbers, so that another signal's export is read as records without ids
            # and times.
            message += f". Is this an export of {self._signal.name}?"
        return message

    def _named(self, place: tuple[int, ...]) -> str:
        form = self._signal.form
        steps = zip((form.resources, form.scopes, form.records), place, strict=False)
        return ".".join(f"{name}[{number}]" for name, number in steps)


@dataclass(frozen=True)
class Export:
    """`size` is the approximate size of the rows in the store, in bytes."""

    rows: list[tuple[Any, ...]]
    size: int
    rejected: int
    message: str


def read_export(signal: Signal[Record], encoding: Encoding, body: bytes) -> Export:
    """A record that cannot be stored is counted and reported; the others are kept.

    Raises MalformedExportError if nothing can be read, and LargeExportError.
    """
    rows: list[tuple[Any, ...]] = []
    rejections = Rejections(signal)
    size = 0
    for place, origin, record in _located(signal, encoding, body):
        if origin is None or isinstance(record, RejectedRecord):
            rejections.note(place, record)
            continue
        try:
            row = signal.to_row(origin, record)
        except Exception as error:
            rejections.note(place, record, error)
            continue
        rows.append(row)
        size = _checked(size + origin.size + record.ByteSize())
    if rejections.nothing_readable and not rows:
        raise MalformedExportError(f"{rejections.message()}.")
    return Export(rows, size, rejections.count, rejections.message(stored=len(rows)))


def _checked(size: int) -> int:
    if size > MAX_STORED_BYTES:
        message = (
            f"Records with their resources and scopes take more than {MAX_STORED_BYTES} bytes. Send smaller batches."
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
        for other in SIGNALS:
            if other is not signal and other.form.resources in document:
                raise MalformedExportError(f"{other.form.resources}: belongs to /v1/{other.name}.")

    return refuse
