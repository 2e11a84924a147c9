"""Checks an MCP caller and its rights in a thread, before the body is read."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.utils.http import is_same_domain
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.renderers import JSONRenderer

from agent.tools.scopes import Granted, granted, require_agent
from core.api.admission import Admission
from core.api.authentication import KeyAloneAuthentication
from core.errors import PermissionDeniedError

# Limits calls from web pages to the pages of this service and of origins that the operator trusts.
#
# Browsers add Origin to a page's requests, which reveals a page whose own name resolves to this service (DNS
# rebinding). Other clients send no Origin.


def require_known_origin(request: HttpRequest) -> None:
    """Raises PermissionDeniedError (403), and DisallowedHost (400) for a page under a Host outside ALLOWED_HOSTS."""
    origin = request.headers.get("Origin", "")
    if not origin:
        return
    own = f"{request.scheme}://{request.get_host()}"
    if origin != own and not any(_matches(origin, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS):
        raise PermissionDeniedError("Pages of this origin may not call this service.", code="origin_not_allowed")


def _matches(origin: str, trusted: str) -> bool:
    scheme, _, domain = trusted.partition("://*")
    if not domain:
        return origin == trusted
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme == scheme and is_same_domain(found.netloc, domain)


@dataclass(frozen=True, slots=True)
class Client:
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
