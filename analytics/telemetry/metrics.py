"""Counts exported metrics as rejected: the service answers them and stores none."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from analytics.telemetry.errors import RejectedRecord
from analytics.telemetry.origin import Origin
from analytics.telemetry.records import Form

FORM = Form(Metric, "resourceMetrics", "scopeMetrics", "metrics")


def metric_row(origin: Origin, metric: Metric) -> tuple[Any, ...]:
    raise RejectedRecord("metrics are not stored here")


def number_of_data_points(metric: Metric) -> int:
    kind = metric.WhichOneof("data")
    return len(getattr(metric, kind).data_points) if kind else 0
