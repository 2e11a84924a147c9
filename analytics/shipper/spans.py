"""Inserts the spans of a batch of records exactly once, because the same batch has the same tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from analytics.clickhouse import client
from analytics.contracts import TELEMETRY
from analytics.shipper.batch import Located
from analytics.telemetry import spans
from analytics.telemetry.request_spans import request_spans
from analytics.telemetry.storage import OWN_COLUMNS

Row = tuple[Any, ...]

_COLUMNS = (*OWN_COLUMNS, *spans.COLUMNS)
_DROP_DATE = OWN_COLUMNS.index("DropDate")
# A server takes at most 100 partitions in one insert, and each day is one.
_DAYS_PER_INSERT = 50


def insert_spans(located: Sequence[Located], token: str) -> None:
    """Returns when the spans of these records are stored. Raises what `client.insert` raises."""
    rows = sorted(_rows(located), key=itemgetter(_DROP_DATE))
    days: list[tuple[date, list[Row]]] = [(day, list(of_day)) for day, of_day in groupby(rows, itemgetter(_DROP_DATE))]
    for number, start in enumerate(range(0, len(days), _DAYS_PER_INSERT)):
        part = [row for _, of_day in days[start : start + _DAYS_PER_INSERT] for row in of_day]
        client.insert(spans.TABLE, _COLUMNS, part, token=f"{token}.spans.{number}")


def _rows(located: Sequence[Located]) -> Iterator[Row]:
    for item in located:
        try:
            record = item.frame.record()
            # The application has sent the span of its own call.
            if record.source != TELEMETRY:
                yield from request_spans(record)
        except (msgspec.DecodeError, ValueError):
            # The frame is no record: it is a dead letter already, and is in the log.
            continue
