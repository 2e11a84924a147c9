from __future__ import annotations

import io
from typing import Any, ClassVar

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from core.api.viewsets import ProjectViewSet
from core.http.bodies import note_length
from core.http.hosts import require_known_host


class Admission(ProjectViewSet):
    """REST framework's stages before an action. A subclass names the operation and what differs: body serializer,
    renderers, authentication."""

    operation_id: ClassVar[str]
    body: ClassVar[Any] = None
    action_map: dict[str, str] = {}

    def admit(self, http: HttpRequest) -> Request:
        """Checks the call and sets what every ViewSet has. Raises exceptions that
        `core.http.exception_handler.translate` knows."""
        self.args, self.kwargs, self.format_kwarg = (), {}, None
        self.request = self.initialize_request(http)
        self.initial(self.request)
        return self.request


def with_session(scope: dict[str, Any], body: bytes = b"") -> HttpRequest:
    """Builds the request of an ASGI scope with its signed-in person. Reads the SQL database: call it in a thread."""
    http = ASGIRequest(scope, io.BytesIO(body))
    note_length(http)
    require_known_host(http)
    for middleware in (SessionMiddleware, AuthenticationMiddleware):
        middleware(_no_response).process_request(http)
    return http


def _no_response(request: HttpRequest) -> HttpResponse:
    return HttpResponse()
