"""Answers an exporter in the encoding of its request (OTLP specification, OTLP/HTTP Response)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from django.http import HttpResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from analytics.telemetry.body import Encoding
from analytics.telemetry.exports import Export
from analytics.telemetry.storage import RETRY_SECONDS
from core.errors import ApplicationError

# The numbers of google.rpc.Code by HTTP status.
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 3, 429: 8, 503: 14}
_INTERNAL = 13


def taken(export: Export, rejected: str, encoding: Encoding) -> HttpResponse:
    """Returns a 200; `rejected` is the JSON name of the field that counts the rejected records."""
    if encoding is Encoding.JSON:
        partial = {rejected: str(export.rejected), "errorMessage": export.message}
        return _answer(200, json.dumps({"partialSuccess": partial} if export.rejected else {}).encode(), encoding)
    return _answer(200, _protobuf(export, rejected), encoding)


def refused(error: ApplicationError, encoding: Encoding) -> HttpResponse:
    """Returns a failure as google.rpc.Status. Exporters repeat a request after a 503 only."""
    code = _CODES.get(error.status, _INTERNAL)
    headers = dict(error.headers)
    if error.status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    if error.status == 503:
        headers.setdefault("Retry-After", str(RETRY_SECONDS))
    if encoding is Encoding.JSON:
        content = json.dumps({"code": code, "message": error.message}).encode()
    else:
        content = _status(code, error.message.encode("utf-8", "replace"))
    return _answer(error.status, content, encoding, headers)


def _protobuf(export: Export, field: str) -> bytes:
    rejected = export.rejected
    response: ExportTraceServiceResponse | ExportLogsServiceResponse | ExportMetricsServiceResponse
    if field == "rejectedSpans":
        response = ExportTraceServiceResponse()
        if rejected:
            response.partial_success.rejected_spans = rejected
    elif field == "rejectedLogRecords":
        response = ExportLogsServiceResponse()
        if rejected:
            response.partial_success.rejected_log_records = rejected
    else:
        response = ExportMetricsServiceResponse()
        if rejected:
            response.partial_success.rejected_data_points = rejected
    if rejected:
        response.partial_success.error_message = export.message
    return response.SerializeToString()


def _status(code: int, message: bytes) -> bytes:
    """Encodes google.rpc.Status by hand (code 1, message 2), which saves a dependency on all of Google's messages."""
    length, size = bytearray(), len(message)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes((0x08, code, 0x12)) + bytes(length) + message


def _answer(status: int, content: bytes, encoding: Encoding, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(content, status=status, content_type=encoding.value, headers=headers or {})
