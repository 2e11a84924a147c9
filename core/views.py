"""The base class of all management views, and the pages of the service itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import ParseError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.views import APIView
from typing_extensions import override

from core.audit.entries import write
from core.audit.operations import NOT_AUDITED, change_of_operation
from core.audit.recording import Recording, recording
from core.authentication import ProjectAccess
from core.errors import ServiceUnavailableError
from core.exception_handler import translate
from core.failures import failure, wants_page
from core.metadata import PathMetadata
from core.models import AuditEntry
from core.openapi import query_of, requires_body
from core.parameters import check_parameters
from core.permissions import operation_of
from core.rights.roles import Right
from core.tenancy import require_same_project


class ProjectAPIView(APIView):
    """A view on one project: `project_id`, `actor` and `sees_content` are set before the handler runs.

    With `sees_content` the caller may read texts that people and models wrote; without it answers hold null instead.

    Works as a base of DRF's generic views too: `class SessionList(ProjectAPIView, ListAPIView)`.
    """

    project_id: UUID
    access: ProjectAccess
    actor: str
    sees_content: bool
    metadata_class = PathMetadata

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        access = request.auth
        if not isinstance(access, ProjectAccess):
            raise TypeError(f"{type(self).__name__} serves projects and needs core's authentication and permission")
        self.access = access
        self.project_id = access.project_id
        self.actor = access.actor
        self.sees_content = Right.READ_CONTENT in access.rights
        handler = getattr(self, getattr(self, "action", None) or str(request.method).lower(), self)
        for named in _named_projects(request, kwargs):
            require_same_project(self.project_id, named)
        _check_parameters(self, handler, request)
        if request.stream is None and requires_body(handler, str(request.method)):
            raise ParseError("The body is empty; it has to be a JSON object.")

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Serves the call. What an unsafe one changed is in the audit log."""
        if request.method in SAFE_METHODS:
            return super().dispatch(request, *args, **kwargs)
        with recording() as collected:
            response = super().dispatch(request, *args, **kwargs)
        if response.status_code < 400 and isinstance(getattr(self, "access", None), ProjectAccess):
            self._audit(collected, str(request.method), kwargs)
        return response

    def _audit(self, collected: Recording, method: str, path: Mapping[str, Any]) -> None:
        operation = operation_of(self.request, self) or ""
        changes = collected.made or change_of_operation(operation, method, path, self.project_id)
        if operation not in NOT_AUDITED and changes:
            write(
                changes,
                actor=self.actor,
                actor_id=str(self.access.user_id or ""),
                via=AuditEntry.Via.API,
                operation=operation,
                request_id=str(getattr(self.request, "request_id", "")),
            )


def health(request: HttpRequest) -> HttpResponse:
    """Answers 200 when this process reaches its SQL database, else 503. Needs no key and shows nothing else."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception as error:
        known = translate(error)
        if not isinstance(known, ServiceUnavailableError):
            raise
        return failure(request, known)
    return JsonResponse({"status": "ok"})


def home(request: HttpRequest) -> HttpResponse:
    """The page at the service's root, with links for people who open the printed address."""
    version = settings.SPECTACULAR_SETTINGS["VERSION"]
    if wants_page(request):
        return render(request, "core/home.html", {"version": version})
    return JsonResponse(
        {
            "name": "Prompt Gateway",
            "version": version,
            "openai_base_url": request.build_absolute_uri("/api/gateway/v1"),
            "openapi": request.build_absolute_uri(reverse("openapi")),
            "admin": request.build_absolute_uri(reverse("admin:index")),
        }
    )


def _named_projects(request: Request, path: dict[str, Any]) -> list[Any]:
    """Returns every `project_id` besides the header's: in the path, the query and a JSON object as body."""
    named = [path["project_id"]] if "project_id" in path else []
    named.extend(request.query_params.getlist("project_id"))
    body = request.data
    if isinstance(body, dict) and body.get("project_id") is not None:
        named.append(body["project_id"])
    return named


def _check_parameters(view: ProjectAPIView, handler: Any, request: Request) -> None:
    query = query_of(handler)
    if query is not None:
        filters = getattr(getattr(view, "filterset_class", None), "base_filters", ()) if query.is_list else ()
        check_parameters(request, query.names.union(filters))
