"""Checks the caller of the MCP server and the caller's rights, in a thread, before the body is read."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.renderers import JSONRenderer

from agent.mcp.origins import require_known_origin
from agent.tools.scopes import Granted, granted, require_agent
from core.api.authentication import ApiKeyAuthentication
from core.views import ProjectAPIView


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a message, the tools that are granted at this moment, and the scopes of the key."""

    project_id: UUID
    actor: str
    granted: Granted
    scopes: frozenset[str]


class _Caller(ProjectAPIView):
    """A view that runs REST framework's stages for a call that Django does not serve."""

    # Sessions are not accepted: browsers send cookies by themselves, so other sites' pages could call.
    operation_id = "callAgentTools"
    authentication_classes = [ApiKeyAuthentication]
    renderer_classes = [JSONRenderer]
    http_method_names = ["post"]

    def client(self, http: HttpRequest) -> Client:
        request = self.initialize_request(http)
        self.request, self.args, self.kwargs = request, (), {}
        self.format_kwarg = None
        self.initial(request)
        settings = require_agent(self.project_id)
        return Client(self.project_id, self.actor, granted(settings, self.access.rights), self.access.scopes)


def admit(scope: dict[str, Any]) -> Client:
    """Returns the client. Raises the exceptions that `core.http.exception_handler.translate` knows."""
    http = ASGIRequest(scope, io.BytesIO())
    http.META.pop("CONTENT_LENGTH", None)  # The body has not been read yet.
    require_known_origin(http)
    client = _Caller().client(http)
    if http.content_type != "application/json":
        raise UnsupportedMediaType(http.content_type or "")
    return client
