"""The endpoints of OTLP/HTTP, to which applications and collectors send spans and logs.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md (OTLP/HTTP). They are plain Django
views: an exporter has its own envelopes, and REST framework does not parse its bodies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from analytics.telemetry import answers
from analytics.telemetry.body import Encoding, encoding_of, read_body
from analytics.telemetry.errors import MalformedExportError, MethodNotAllowedError, UnsupportedExportError
from analytics.telemetry.exports import Export, read_export
from analytics.telemetry.prompt_calls import prompt_calls, prompt_calls_stored
from analytics.telemetry.signals import LOGS, METRICS, TRACES, Signal
from analytics.telemetry.storage import Gatherer
from core.api.authentication import require_project_of_key, require_scope, usable_key
from core.errors import ApplicationError
from core.http.exception_handler import log_unexpected, request_id, translate
from core.keys.last_use import flush_last_uses_when_due, note_use
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
            project_id = _authenticated(request, operation_id)
            if request.method != "POST":
                raise MethodNotAllowedError("Use POST.", headers={"Allow": "POST"})
            encoding_of(request.content_type or "")
            body = _body(request)
            found = read_export(signal, encoding, body)
            if gatherer is not None:
                gatherer.store(project_id, found.rows, body=body, size=found.size)
            if signal is TRACES:
                _announce_calls(project_id, found)
        except Exception as error:
            return answers.refused(_known(error, request), encoding)
        return answers.taken(found, signal.rejected, encoding)

    export.reads_compressed = True  # type: ignore[attr-defined]  # read by `core.http.bodies`
    return export


def _announce_calls(project_id: UUID, found: Export) -> None:
    """Announces the calls of prompts among spans that are stored: what fails now does not fail the export."""
    calls = prompt_calls(found.rows)
    if not calls:
        return
    for _, error in prompt_calls_stored.send_robust(sender=None, project_id=project_id, calls=calls):
        if isinstance(error, Exception):
            logger.error("calls.not_recorded project_id=%s error=%s", project_id, type(error).__name__)


def _encoding(request: HttpRequest) -> Encoding:
    """Returns the encoding of the answer: the request's own, or readable JSON when that is unknown."""
    try:
        return encoding_of(request.content_type or "")
    except UnsupportedExportError:
        return Encoding.JSON


def _authenticated(request: HttpRequest, operation_id: str) -> UUID:
    """Returns the project of the key, which may be the one that an application calls models with."""
    record = usable_key(request.headers.get("Authorization", "").strip())
    if names_project(request):
        require_project_of_key(request, record)
    require_scope(record.scopes, operation_id)
    note_use(record.id, timezone.now())
    flush_last_uses_when_due()
    return record.project_id


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
