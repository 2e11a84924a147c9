"""The base of every management view, core's own endpoints, and what stands behind unknown paths."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404
from django.views import defaults
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from typing_extensions import override

from core.authentication import ProjectAccess
from core.errors import ApplicationError, NotFoundError, ServiceUnavailableError
from core.exception_handler import error_body, translate
from core.keys import issue_key, revoke_key
from core.metadata import PathMetadata
from core.models import ApiKey, Project
from core.openapi import PAGE, operation
from core.pagination import LimitOffset
from core.rights.roles import Right
from core.serializers import ApiKeySerializer, IssuedApiKeySerializer, NewApiKeySerializer
from core.tenancy import require_same_project


class ProjectAPIView(APIView):
    """A view on one project: `project_id`, `actor` and `sees_content` are set before the handler runs.

    `sees_content`: whether the caller may read what people and models wrote; without it answers hold null instead.

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
        """The only answer that holds the key itself."""
        wanted = NewApiKeySerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        project = get_object_or_404(Project, pk=self.project_id)
        row, key = issue_key(project, **wanted.validated_data)
        return Response({**ApiKeySerializer(row).data, "key": key}, status=status.HTTP_201_CREATED)


class ApiKeyView(ProjectAPIView):
    @operation("revokeApiKey", "Revoke an API key", status=204, errors=[404])
    def delete(self, request: Request, key_id: int) -> Response:
        """Revokes: the row stays, for those who ask later whose key it was."""
        revoke_key(get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=key_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


def health(request: HttpRequest) -> JsonResponse:
    """200 when this process answers and reaches its SQL database, else 503. Needs no key and tells nothing else."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception as error:
        known = translate(error)
        if not isinstance(known, ServiceUnavailableError):
            raise
        return JsonResponse(error_body(known), status=known.status)
    return JsonResponse({"status": "ok"})


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if _is_api(request):
        return _json(NotFoundError("There is nothing at this path."))
    return defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    known = translate(exception)
    if _is_api(request) and known is not None:
        return _json(known)
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    if _is_api(request):
        return _json(ApplicationError("The service failed unexpectedly."))
    return defaults.server_error(request)


def _named_projects(request: Request, path: dict[str, Any]) -> list[Any]:
    """Every `project_id` the call names besides the header: in the path, the query and a JSON object as body."""
    named = [path["project_id"]] if "project_id" in path else []
    named.extend(request.query_params.getlist("project_id"))
    body = request.data
    if isinstance(body, dict) and body.get("project_id") is not None:
        named.append(body["project_id"])
    return named


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _json(error: ApplicationError) -> HttpResponse:
    return JsonResponse(error_body(error), status=error.status)
