"""Checks the caller of the MCP server and the caller's rights, in a thread, before the body is read."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.renderers import JSONRenderer

from agent.mcp.origins import require_known_origin
from agent.tools.scopes import Granted, granted, require_agent
from core.api.admission import Admission
from core.api.authentication import KeyAloneAuthentication


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a message, the tools that are granted at this moment, and the scopes of the key."""

    project_id: UUID
    actor: str
    granted: Granted
    scopes: frozenset[str]


class _Calling(Admission):
    # Sessions are not accepted: browsers send cookies by themselves, so other sites' pages could call. A key needs no
    # project beside it, since most clients are set up by an address and a key alone.
    operation_id = "callAgentTools"
    authentication_classes = [KeyAloneAuthentication]
    renderer_classes = [JSONRenderer]


def admit(scope: dict[str, Any]) -> Client:
    """Returns the client. Raises the exceptions that `core.http.exception_handler.translate` knows."""
    http = ASGIRequest(scope, io.BytesIO())
    http.META.pop("CONTENT_LENGTH", None)  # The body has not been read yet.
    require_known_origin(http)
    calling = _Calling()
    calling.admit(http)
    settings = require_agent(calling.project_id)
    client = Client(calling.project_id, calling.actor, granted(settings, calling.access.rights), calling.access.scopes)
    if http.content_type != "application/json":
        raise UnsupportedMediaType(http.content_type or "")
    return client
