"""The endpoints of OTLP/HTTP, to which applications and collectors send spans and logs.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md (OTLP/HTTP). They are plain Django
views: OTLP has its own envelopes, and REST framework does not parse its bodies.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from analytics.telemetry.body import Encoding, encoding_of, read_body
from analytics.telemetry.errors import MalformedExportError, MethodNotAllowedError, UnsupportedExportError
from analytics.telemetry.evaluation_results import evaluation_results, evaluation_results_stored
from analytics.telemetry.exports import Export, read_export
from analytics.telemetry.prompt_calls import prompt_calls, prompt_calls_stored
from analytics.telemetry.signals import LOGS, METRICS, TRACES, Signal
from analytics.telemetry.storage import RETRY_SECONDS, Gatherer
from analytics.telemetry.wire import encoded_varint
from core.api.authentication import require_project_of_key, require_scope, usable_key
from core.errors import ApplicationError
from core.http.exception_handler import log_unexpected, request_id, translate
from core.keys.last_use import flush_last_uses_when_due, note_use
from core.keys.services import KeyRecord
from core.rights.asking import scopes_of_operation
from core.tenancy import names_project

logger = logging.getLogger("analytics.telemetry")

View = Callable[[HttpRequest], HttpResponse]


def _view(signal: Signal[Any], operation_id: str) -> View:
    gatherer = Gatherer(signal.table, signal.columns) if signal.table else None

    @csrf_exempt
    def export(request: HttpRequest) -> HttpResponse:
        encoding = Encoding.JSON
        try:
            encoding = _encoding(request)
            key = _authenticated(request, operation_id)
            project_id = key.project_id
            if request.method != "POST":
                raise MethodNotAllowedError("Use POST.", headers={"Allow": "POST"})
            encoding_of(request.content_type or "")
            body = _body(request)
            found = read_export(signal, encoding, body)
            if gatherer is not None:
                gatherer.store(project_id, found.rows, body=body, size=found.size)
            if signal is TRACES:
                _announce_calls(project_id, found)
            elif signal is LOGS:
                _announce_results(key, found)
        except Exception as error:
            return refused(_known(error, request), encoding)
        return taken(found, signal.rejected, encoding)

    export.reads_compressed = True  # type: ignore[attr-defined]  # read by `core.http.bodies`
    return export


def _announce_calls(project_id: UUID, found: Export) -> None:
    calls = prompt_calls(found.rows)
    if not calls:
        return
    for _, error in prompt_calls_stored.send_robust(sender=None, project_id=project_id, calls=calls):
        if isinstance(error, Exception):
            logger.error("calls.not_recorded project_id=%s error=%s", project_id, type(error).__name__)


def _announce_results(key: KeyRecord, found: Export) -> None:
    scores = evaluation_results(found.rows)
    if not scores or key.scopes.isdisjoint(scopes_of_operation("recordScores")):
        return
    sent = {"project_id": key.project_id, "actor": f"key:{key.id}", "scores": scores}
    for _, error in evaluation_results_stored.send_robust(sender=None, **sent):
        if isinstance(error, Exception):
            logger.error("results.not_recorded project_id=%s error=%s", key.project_id, type(error).__name__)


def _encoding(request: HttpRequest) -> Encoding:
    try:
        return encoding_of(request.content_type or "")
    except UnsupportedExportError:
        return Encoding.JSON


def _authenticated(request: HttpRequest, operation_id: str) -> KeyRecord:
    record = usable_key(request.headers.get("Authorization", "").strip())
    if names_project(request):
        require_project_of_key(request, record)
    require_scope(record.scopes, operation_id)
    note_use(record.id, timezone.now())
    flush_last_uses_when_due()
    return record


def _body(request: HttpRequest) -> bytes:
    declared = request.headers.get("Content-Length", "")
    try:
        return read_body(
            request,
            request.headers.get("Content-Encoding", ""),
            declared=int(declared) if declared.isascii() and declared.isdigit() else 0,
            limit=settings.OTLP_BODY_BYTES,
        )
    except OSError:
        raise MalformedExportError("The body did not arrive completely.") from None


def _known(error: Exception, request: HttpRequest) -> ApplicationError:
    known = translate(error)
    if known is None:
        log_unexpected(error, request_id({"request": request}))
        known = ApplicationError("The service failed unexpectedly.")
    return known


traces, logs = _view(TRACES, "exportTraces"), _view(LOGS, "exportLogs")
metrics = _view(METRICS, "exportMetrics")


# The numbers of google.rpc.Code by HTTP status.
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 3, 429: 8, 503: 14}
_INTERNAL = 13
# The answer of each signal by the JSON name of its field for rejected records, and the name of that field.
_RESPONSES = {
    "rejectedSpans": (ExportTraceServiceResponse, "rejected_spans"),
    "rejectedLogRecords": (ExportLogsServiceResponse, "rejected_log_records"),
    "rejectedDataPoints": (ExportMetricsServiceResponse, "rejected_data_points"),
}


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
    kind, name = _RESPONSES[field]
    response = kind()
    if export.rejected:
        setattr(response.partial_success, name, export.rejected)
        response.partial_success.error_message = export.message
    return bytes(response.SerializeToString())


def _status(code: int, message: bytes) -> bytes:
    """Encodes google.rpc.Status by hand (code 1, message 2), which saves a dependency on all of Google's messages."""
    return bytes((0x08, code, 0x12)) + encoded_varint(len(message)) + message


def _answer(status: int, content: bytes, encoding: Encoding, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(content, status=status, content_type=encoding.value, headers=headers or {})
