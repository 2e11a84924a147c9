"""A request id on every response of the management API."""

from __future__ import annotations

import uuid

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.deprecation import MiddlewareMixin

from core.exception_handler import error_body, error_headers, translate

REQUEST_ID_HEADER = "x-request-id"


class RequestIdMiddleware(MiddlewareMixin):
    """Sets `request.request_id`, and the header on the way out. First in the list: errors carry the header too."""

    def process_request(self, request: HttpRequest) -> None:
        request.request_id = uuid.uuid4().hex  # type: ignore[attr-defined]  # added here for handlers and log lines

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers[REQUEST_ID_HEADER] = getattr(request, "request_id", "")
        return response


class DatabaseAwayMiddleware(MiddlewareMixin):
    """503 and when to try again for a page whose database is locked, full or away: what the API answers for its own."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        if not isinstance(exception, OperationalError | InterfaceError):
            return None
        error = translate(exception)
        if error is None:
            return None
        headers = error_headers(error, error.status)
        if request.path.startswith("/api/"):
            return JsonResponse(error_body(error), status=error.status, headers=headers)
        return HttpResponse(error.message, status=error.status, headers=headers, content_type="text/plain")
