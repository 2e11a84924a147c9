"""The three signals of OpenTelemetry: the form of their records, and the function that stores them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from analytics.telemetry import logs, metrics, spans
from analytics.telemetry.origin import Origin
from analytics.telemetry.records import Form, Record


@dataclass(frozen=True)
class Signal(Generic[Record]):
    """A signal. `name` is the last part of its path; `rejected` is the field of the answer that counts rejected
    records."""

    name: str
    form: Form[Record]
    rejected: str
    table: str
    columns: tuple[str, ...]
    to_row: Callable[[Origin, Record], tuple[Any, ...]]
    weigh: Callable[[Record], int] = lambda record: 1


TRACES = Signal("traces", spans.FORM, "rejectedSpans", spans.TABLE, spans.COLUMNS, spans.span_row)
LOGS = Signal("logs", logs.FORM, "rejectedLogRecords", logs.TABLE, logs.COLUMNS, logs.log_row)
METRICS = Signal(
    "metrics", metrics.FORM, "rejectedDataPoints", "", (), metrics.metric_row, metrics.number_of_data_points
)
SIGNALS: tuple[Signal[Any], ...] = (TRACES, LOGS, METRICS)
