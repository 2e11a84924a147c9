from __future__ import annotations

import uuid

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.deprecation import MiddlewareMixin

from core.errors import ServiceUnavailableError
from core.http.exception_handler import translate
from core.http.failures import failure

REQUEST_ID_HEADER = "x-request-id"


class RequestIdMiddleware(MiddlewareMixin):
    """Sets `request.request_id` and the response header. Comes first, so that errors carry the header."""

    def process_request(self, request: HttpRequest) -> None:
        request.request_id = uuid.uuid4().hex  # type: ignore[attr-defined]  # added here for handlers and log lines

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers[REQUEST_ID_HEADER] = getattr(request, "request_id", "")
        return response


class CompressedStaticMiddleware(GZipMiddleware):
    """Compresses style sheets, scripts and icons. Pages are not: they stream, and hold secrets beside given text."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_text = request.path.startswith(settings.STATIC_URL) and request.path.endswith((".css", ".js", ".svg"))
        return super().process_response(request, response) if is_text else response


class DatabaseAwayMiddleware(MiddlewareMixin):
    """Answers 503 if a page's database is unreachable, full or locked; Django would treat that as a defect."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        known = translate(exception)
        return failure(request, known) if isinstance(known, ServiceUnavailableError) else None
