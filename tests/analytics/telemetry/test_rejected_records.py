"""Records that cannot be stored are counted in the answer, and the others of their export are stored."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics

from tests.analytics.telemetry.sending import JSON, PROTOBUF, Sender, decoded, log, logs, rows, span, traces

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry")]

BAD_SPANS: dict[str, dict[str, Any]] = {
    "trace_id must have 16 bytes": {"trace_id": b"\x01" * 8},
    "trace_id is all zeros": {"trace_id": bytes(16)},
    "span_id must have 8 bytes": {"span_id": b""},
    "parent_span_id must have 8 bytes": {"parent_span_id": b"\x01" * 9},
    "start_time_unix_nano is missing": {"start_time_unix_nano": 0},
    "start_time_unix_nano is beyond the year 2262": {"start_time_unix_nano": 2**64 - 1},
}


@pytest.mark.parametrize("reason", BAD_SPANS)
def test_traces__bad_span__counted_and_the_rest_kept(sender: Sender, reason: str) -> None:
    bad = BAD_SPANS[reason]

    answer = sender.traces(span(1), span(2, **bad), span(3))

    partial = decoded(answer, ExportTraceServiceResponse).partial_success
    assert (answer.status_code, partial.rejected_spans) == (200, 1)
    assert reason in partial.error_message
    assert rows("otel_traces") == 2


def test_logs__bad_record__counted_and_the_rest_kept(sender: Sender) -> None:
    answer = sender.logs(
        log(1, time_unix_nano=0), log(2, trace_id=b"x"), log(3, time_unix_nano=0, observed_time_unix_nano=5)
    )

    partial = decoded(answer, ExportLogsServiceResponse).partial_success
    assert partial.rejected_log_records == 2
    assert rows("otel_logs") == 1


@pytest.mark.parametrize("number", range(1, 4))
def test_traces__broken_bytes_in_one_span__counted_and_the_rest_kept(sender: Sender, number: int) -> None:
    content = traces(span(1), span(2, name="BREAK-ME"), span(3)).SerializeToString()
    # The bytes are text that is not UTF-8, a field that ends beyond the span, and an unknown wire type.
    broken = {
        1: content.replace(b"BREAK-ME", b"BRE\xff\xfe-ME"),
        2: content.replace(b"\x2a\x08BREAK-ME", b"\x2a\x7fBREAK-ME"),
        3: content.replace(b"\x2a\x08BREAK-ME", b"\x2f\x08BREAK-ME"),
    }[number]
    assert broken != content

    answer = sender.post("traces", broken)

    assert answer.status_code == 200
    expected = 0 if number == 1 else 1
    assert decoded(answer, ExportTraceServiceResponse).partial_success.rejected_spans == expected
    assert rows("otel_traces") == 3 - expected


def test_json__bad_record__counted_and_the_rest_kept(sender: Sender) -> None:
    good = {"traceId": "01" * 16, "spanId": "02" * 8, "startTimeUnixNano": "5"}
    bad = [
        7,
        None,
        {**good, "traceId": "zz" * 16},
        {**good, "spanId": 12},
        {**good, "kind": {}},
        {**good, "attributes": [{"key": "a", "value": {"intValue": str(2**63)}}]},
        {**good, "startTimeUnixNano": "-1"},
    ]

    answer = sender.json("traces", {"resourceSpans": [{"scopeSpans": [{"spans": [good, *bad]}]}]})

    partial = json.loads(answer.content)["partialSuccess"]
    assert partial["rejectedSpans"] == str(len(bad))
    assert partial["errorMessage"]
    assert rows("otel_traces") == 1


def test_traces__export_of_logs__every_record_counted_and_explained(sender: Sender) -> None:
    answer = sender.post("traces", logs(log(1), log(2)).SerializeToString())

    partial = decoded(answer, ExportTraceServiceResponse).partial_success
    assert partial.rejected_spans == 2
    assert "Is this an export of traces?" in partial.error_message
    assert rows("otel_traces") == 0


def test_logs__export_of_traces__every_record_counted_and_explained(sender: Sender) -> None:
    answer = sender.post("logs", traces(span(1), span(2)).SerializeToString())

    partial = decoded(answer, ExportLogsServiceResponse).partial_success
    assert partial.rejected_log_records == 2
    assert rows("otel_logs") == 0


def test_json__export_of_another_signal__400(sender: Sender) -> None:
    answer = sender.json("traces", MessageToDict(logs(log(1))))

    assert answer.status_code == 400
    assert json.loads(answer.content) == {"code": 3, "message": "resourceLogs: belongs to /v1/logs."}


def test_metrics__answered_with_the_number_that_was_not_stored(sender: Sender) -> None:
    metric = Metric(name="m", gauge=Gauge(data_points=[NumberDataPoint(as_int=1), NumberDataPoint(as_int=2)]))
    export = ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[metric])])]
    )

    answer = sender.post("metrics", export.SerializeToString())

    assert answer.status_code == 200
    assert decoded(answer, ExportMetricsServiceResponse).partial_success.rejected_data_points == 2
    as_json = sender.json("metrics", MessageToDict(export))
    assert json.loads(as_json.content)["partialSuccess"]["rejectedDataPoints"] == "2"


def test_json__record_of_more_than_memory_is_for__counted_alone(sender: Sender) -> None:
    good = b'{"traceId": "01010101010101010101010101010101", "spanId": "0202020202020202", "startTimeUnixNano": 5}'
    huge = b'{"x": [' + b"[]," * 2_900_000 + b"[]]}"

    answer = sender.post("traces", b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b,%b]}]}]}' % (huge, good), JSON)

    assert json.loads(answer.content)["partialSuccess"]["rejectedSpans"] == "1"
    assert rows("otel_traces") == 1


def test_record__too_large_or_too_many_attributes__counted(sender: Sender) -> None:
    large = span(1, name="x" * 4_200_000)
    many = span(2, {str(number): "" for number in range(4097)})

    answer = sender.traces(large, many, span(3))

    assert decoded(answer, ExportTraceServiceResponse).partial_success.rejected_spans == 2


def test_traces__types__answered_alike(sender: Sender) -> None:
    """Rejected records are counted alike in protobuf and JSON."""
    export = traces(span(1), span(2, span_id=b"x"))
    document = MessageToDict(export)
    for written in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId"):
            written[name] = base64.b64decode(written[name]).hex()

    protobuf = decoded(sender.post("traces", export.SerializeToString(), PROTOBUF), ExportTraceServiceResponse)
    as_json = json.loads(sender.json("traces", document).content)["partialSuccess"]

    assert as_json == {"rejectedSpans": "1", "errorMessage": protobuf.partial_success.error_message}
    assert rows("otel_traces") == 1
