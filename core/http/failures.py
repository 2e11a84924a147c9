from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import REASON_NO_CSRF_COOKIE
from django.template.loader import render_to_string
from django.urls import resolve, reverse

from core.errors import ApplicationError, NotFoundError, PermissionDeniedError, ValidationError
from core.http.exception_handler import error_body, error_headers, translate

_API = "/api/"
_UNEXPECTED = "The service failed unexpectedly."
_STALE_FORM = "The form was sent without the token of this session. Open the page again, and send it once more."
_COOKIES_NEED_TLS = (
    "This page came over plain HTTP, and the service gives its cookies to HTTPS only. Open it under https://. Behind a "
    "proxy that speaks TLS, the proxy has to send X-Forwarded-Proto and TRUSTED_PROXIES has to count it; to sign in "
    "over plain HTTP on purpose, start the service with INSECURE_HTTP=1."
)


def wants_page(request: HttpRequest) -> bool:
    """Returns whether the client is a browser, which names HTML in `Accept`; programs send `*/*` or nothing."""
    return not request.path.startswith(_API) and "text/html" in request.headers.get("Accept", "")


def failure(request: HttpRequest, error: ApplicationError) -> HttpResponse:
    headers = error_headers(error, error.status)
    if not wants_page(request):
        return JsonResponse(error_body(error), status=error.status, headers=headers)
    context = {
        "title": HTTPStatus(error.status).phrase,
        "message": error.message,
        "request_id": getattr(request, "request_id", ""),
    }
    return HttpResponse(_page(request, error, context), status=error.status, headers=headers)


def _page(request: HttpRequest, error: ApplicationError, context: dict[str, Any]) -> str:
    """Shows the operators' frame to people who have it, but not after a defect, which may be in the frame."""
    of_operators = request.path.startswith(reverse("admin:index")) and error.status < HTTPStatus.INTERNAL_SERVER_ERROR
    try:
        if of_operators and hasattr(request, "user") and admin.site.has_permission(request):
            return render_to_string("ui/failure.html", {**admin.site.each_context(request), **context}, request)
    finally:
        # Under ASGI Django calls this in a thread of its own, whose connections no end of a request closes.
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close()
    return render_to_string("core/failure.html", context)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return failure(request, translate(exception) or ValidationError("The request cannot be read."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return failure(request, PermissionDeniedError("You may not see or do this.", code="forbidden"))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return failure(request, NotFoundError("There is nothing at this path." + _without_slash(request.path)))


def server_error(request: HttpRequest) -> HttpResponseBase:
    return failure(request, ApplicationError(_UNEXPECTED))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    cookies_lost = not request.is_secure() and settings.CSRF_COOKIE_SECURE and reason == REASON_NO_CSRF_COOKIE
    message = _COOKIES_NEED_TLS if cookies_lost else _STALE_FORM
    return failure(request, PermissionDeniedError(message, code="csrf_failed"))


def _without_slash(path: str) -> str:
    shorter = path.rstrip("/")
    if not path.endswith("/") or not shorter:
        return ""
    try:
        found = resolve(shorter)
    except Http404:
        return ""
    # Below the operators' pages one without a name takes every path.
    return f" {shorter} has no slash at its end." if found.url_name else ""
