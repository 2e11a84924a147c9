"""Admits people who are signed in to the admin, whose roles the SQL database knows. Called in threads."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse

from core.bodies import note_length
from core.hosts import require_known_host
from core.views import ProjectAPIView


class _Caller(ProjectAPIView):
    """A view that runs REST framework's stages for a call that Django does not serve."""

    operation_id = "getPrompt"
    http_method_names = ["get", "post"]

    def admitted(self, http: HttpRequest) -> UUID:
        request = self.initialize_request(http)
        self.request, self.args, self.kwargs = request, (), {}
        self.format_kwarg = None
        self.initial(request)
        return self.project_id


def project_of_session(scope: dict[str, Any]) -> UUID:
    """Returns the project that the header names and the person may read. Raises the exceptions that
    `core.exception_handler.translate` knows."""
    http = ASGIRequest(scope, io.BytesIO())
    # The body is read elsewhere: here it has no bytes.
    note_length(http)
    require_known_host(http)
    for middleware in (SessionMiddleware, AuthenticationMiddleware):
        middleware(_no_response).process_request(http)
    return _Caller().admitted(http)


def project_in_thread(scope: dict[str, Any]) -> UUID:
    """Returns the same in a thread of its own, whose connection may have been idle for long."""
    close_old_connections()
    return project_of_session(scope)


def _no_response(request: HttpRequest) -> HttpResponse:
    return HttpResponse()
