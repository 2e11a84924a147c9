from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import ParseError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import GenericViewSet

from core.api.authentication import ProjectAccess
from core.api.metadata import PathMetadata
from core.api.permissions import operation_of
from core.audit.entries import write
from core.audit.operations import NOT_AUDITED, change_of_operation
from core.audit.recording import Recording, recording
from core.models import AuditEntry
from core.openapi import query_of, requires_body
from core.roles import Right
from core.tenancy import require_same_project
from core.wire.parameters import check_parameters

_BODIES = {"application/json": "a JSON object"}

Shape = TypeVar("Shape", bound=BaseSerializer[Any])


class ProjectViewSet(GenericViewSet[Any]):
    """The operations on one resource of a project. Each is an action that `@operation` names and describes:

        class ThingViewSet(ProjectViewSet):
            lookup_url_kwarg = "thing_id"
            lookup_value_converter = "uuid"

            @operation("listThings", "List things", query=[PAGE], page=ThingSerializer)
            def list(self, request: Request) -> Response:
                return self.page(list_things(self.project_id), ThingSerializer)

    `project_id`, `access`, `actor` and `sees_content` are set before an action runs. With `sees_content` the caller may
    read texts that people and models wrote; without it answers hold null instead.

    A list that is filtered names its `filterset_class`, which belongs to all pages of the ViewSet; an action without
    the filters is marked by `@action(..., filterset_class=None)`.
    """

    project_id: UUID
    access: ProjectAccess
    actor: str
    sees_content: bool
    metadata_class = PathMetadata
    lookup_value_converter: ClassVar[str] = "str"
    filterset_class: Any = None

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
            wanted = self.parser_classes[0].media_type or ""
            raise ParseError(f"The body is empty; it has to be {_BODIES.get(wanted, wanted)}.")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method in SAFE_METHODS:
            return super().dispatch(request, *args, **kwargs)
        with recording() as collected:
            response = super().dispatch(request, *args, **kwargs)
        if response.status_code < 400 and isinstance(getattr(self, "access", None), ProjectAccess):
            self._audit(collected, str(request.method), kwargs)
        return response

    def valid_body(self, serializer: type[Shape], **context: Any) -> Shape:
        return _valid(serializer(data=self.request.data, context=context))

    def valid_query(self, parameters: type[Shape]) -> Shape:
        return _valid(parameters(data=self.request.query_params.dict()))

    def page(self, rows: QuerySet[Any] | Sequence[Any], serializer: type[BaseSerializer[Any]]) -> Response:
        return self.get_paginated_response(serializer(self.rows_of_page(rows), many=True).data)

    def rows_of_page(self, rows: QuerySet[Any] | Sequence[Any]) -> Sequence[Any]:
        filtered = self.filter_queryset(rows) if isinstance(rows, QuerySet) else rows
        return self.paginate_queryset(filtered) or ()

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


def _valid(serializer: Shape) -> Shape:
    serializer.is_valid(raise_exception=True)
    return serializer


def _named_projects(request: Request, path: Mapping[str, Any]) -> Iterable[Any]:
    named = [path["project_id"]] if "project_id" in path else []
    named.extend(request.query_params.getlist("project_id"))
    body = request.data
    if isinstance(body, dict) and body.get("project_id") is not None:
        named.append(body["project_id"])
    return named


def _check_parameters(view: ProjectViewSet, handler: Any, request: Request) -> None:
    query = query_of(handler)
    if query is not None:
        filters = getattr(view.filterset_class, "base_filters", ()) if query.is_list else ()
        check_parameters(request, query.names.union(filters))
