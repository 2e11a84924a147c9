"""Collects the rejected records of an export: their number, places and reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analytics.telemetry.errors import RejectedPart, RejectedRecord
from analytics.telemetry.signals import Signal

_MAX_REASONS = 3


@dataclass
class _Reason:
    first: str
    count: int = 0


class Rejections:
    """Gathers the rejections of one export of `signal`; each reason is reported with the first record that it
    concerns."""

    def __init__(self, signal: Signal[Any]) -> None:
        self._signal = signal
        self._reasons: dict[str, _Reason] = {}
        self._parts = 0
        self._others = 0

    @property
    def count(self) -> int:
        """Returns the number of rejected records."""
        return sum(reason.count for reason in self._reasons.values())

    @property
    def nothing_readable(self) -> bool:
        """Returns whether parts of the export were unreadable and no other part had a record."""
        return self._parts > 0 and not self._others

    def note(self, place: tuple[int, ...], record: Any, error: Exception | None = None) -> None:
        """Adds a rejection: `record` is the record that `error` is about, or the rejection itself."""
        rejection = record if error is None else error
        if isinstance(rejection, RejectedPart):
            self._parts += 1
        else:
            self._others += 1
        why = str(rejection) if isinstance(rejection, RejectedRecord) else "the record is not readable"
        reason = self._reasons.setdefault(why, _Reason(self._named(place)))
        reason.count += 1 if error is None else self._signal.weigh(record)

    def message(self, *, stored: int = 0) -> str:
        """Returns the message about the rejections, empty without any; `stored` is the number of stored records."""
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
