"""The endpoints of saved views of lists."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics import saved_views
from analytics.models import ListPage
from analytics.serializers.saved_views import NewViewSerializer, SavedViewSerializer, ViewParameters
from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset


class SavedViewsView(ProjectAPIView):
    @operation("listViews", "List the own saved views", query=[PAGE, ViewParameters], page=SavedViewSerializer)
    def get(self, request: Request) -> Response:
        """The views that the caller has saved, by name. Nobody sees those of others."""
        given = ViewParameters(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        page = given.validated_data.get("page")
        paginator = LimitOffset()
        views = saved_views.list_views(self.project_id, self.actor, ListPage(page) if page else None)
        rows = paginator.paginate_queryset(views, request, self)
        return paginator.get_paginated_response(SavedViewSerializer(rows, many=True).data)

    @operation(
        "saveView",
        "Save a view",
        body=NewViewSerializer,
        answer=SavedViewSerializer,
        status=201,
        also={(200, "application/json"): SavedViewSerializer},
    )
    def post(self, request: Request) -> Response:
        """Saves filters, order and columns of a list under a name: 201, or 200 in the place of a view of that name."""
        body = NewViewSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        view, made = saved_views.save_view(project_id=self.project_id, owner=self.actor, **body.validated_data)
        return Response(SavedViewSerializer(view).data, status=201 if made else 200)


class SavedViewView(ProjectAPIView):
    @operation("deleteView", "Delete a saved view", status=204, errors=[404])
    def delete(self, request: Request, view_id: UUID) -> Response:
        saved_views.delete_view(project_id=self.project_id, owner=self.actor, view_id=view_id)
        return Response(status=204)
