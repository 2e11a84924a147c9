"""The three signals of OpenTelemetry: the form of their records, and the function that stores them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from analytics.telemetry import logs, spans
from analytics.telemetry.errors import RejectedRecord
from analytics.telemetry.origin import Origin
from analytics.telemetry.records import Form, Record

_METRICS = Form(Metric, "resourceMetrics", "scopeMetrics", "metrics")


def _rejected(origin: Origin, metric: Metric) -> tuple[Any, ...]:
    """Rejects the metric: the service answers exports of metrics, counts them as rejected and stores none."""
    raise RejectedRecord("metrics are not stored here")


def _number_of_data_points(metric: Metric) -> int:
    kind = metric.WhichOneof("data")
    return len(getattr(metric, kind).data_points) if kind else 0


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
METRICS = Signal("metrics", _METRICS, "rejectedDataPoints", "", (), _rejected, _number_of_data_points)
SIGNALS: tuple[Signal[Any], ...] = (TRACES, LOGS, METRICS)
