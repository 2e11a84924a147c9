from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from core.audit.entries import write
from core.audit.recording import recording
from core.models import AuditEntry
from core.rights.asking import actor_of


def audited(request: HttpRequest, url_name: str, respond: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    with recording() as collected:
        response = respond()
    if response.status_code < 400 and collected.made and request.user.is_authenticated:
        write(
            collected.made,
            actor=actor_of(request.user),
            actor_id=str(request.user.pk),
            via=AuditEntry.Via.PAGE,
            operation=url_name,
            request_id=str(getattr(request, "request_id", "")),
        )
    return response
