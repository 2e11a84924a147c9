"""The base class of all management views, and core's own endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from rest_framework import status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from typing_extensions import override

from core.audit.entries import write
from core.audit.operations import NOT_AUDITED, change_of_operation
from core.audit.recording import Recording, recording
from core.authentication import ProjectAccess
from core.errors import ServiceUnavailableError
from core.exception_handler import translate
from core.failures import failure, wants_page
from core.keys import issue_key, revoke_key
from core.metadata import PathMetadata
from core.models import ApiKey, AuditEntry, Project
from core.openapi import PAGE, operation, query_of
from core.pagination import LimitOffset
from core.parameters import check_parameters
from core.permissions import operation_of
from core.rights.roles import Right
from core.serializers import ApiKeySerializer, IssuedApiKeySerializer, NewApiKeySerializer
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
        for named in _named_projects(request, kwargs):
            require_same_project(self.project_id, named)
        self._check_parameters(request)

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

    def _check_parameters(self, request: Request) -> None:
        query = query_of(getattr(self, getattr(self, "action", None) or str(request.method).lower(), None))
        if query is not None:
            filters = getattr(getattr(self, "filterset_class", None), "base_filters", ()) if query.is_list else ()
            check_parameters(request, query.names.union(filters))


class ApiKeysView(ProjectAPIView):
    @operation("listApiKeys", "List API keys", query=[PAGE], page=ApiKeySerializer)
    def get(self, request: Request) -> Response:
        paginator = LimitOffset()
        keys = paginator.paginate_queryset(ApiKey.objects.for_project(self.project_id), request, self)
        return paginator.get_paginated_response(ApiKeySerializer(keys, many=True).data)

    @operation(
        "issueApiKey",
        "Issue an API key",
        body=NewApiKeySerializer,
        answer=IssuedApiKeySerializer,
        status=201,
        errors=[404],
    )
    def post(self, request: Request) -> Response:
        """Makes a key. This answer alone holds the key itself."""
        serializer = NewApiKeySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        project = get_object_or_404(Project, pk=self.project_id)
        row, key = issue_key(project, **serializer.validated_data)
        return Response({**ApiKeySerializer(row).data, "key": key}, status=status.HTTP_201_CREATED)


class ApiKeyView(ProjectAPIView):
    @operation("revokeApiKey", "Revoke an API key", status=204, errors=[404])
    def delete(self, request: Request, key_id: int) -> Response:
        """Revokes a key: the row stays, so that its owner can be found later."""
        revoke_key(get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=key_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


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
