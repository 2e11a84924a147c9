"""The endpoints of saved views of lists."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics import saved_views
from analytics.models import ListPage
from analytics.serializers.saved_views import NewViewSerializer, SavedViewSerializer, ViewParameters
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation


class SavedViewViewSet(ProjectViewSet):
    lookup_url_kwarg = "view_id"
    lookup_value_converter = "uuid"

    @operation("listViews", "List the own saved views", query=[PAGE, ViewParameters], page=SavedViewSerializer)
    def list(self, request: Request) -> Response:
        """The views that the caller has saved, by name. Nobody sees those of others."""
        given = self.valid_query(ViewParameters)
        page = given.validated_data.get("page")
        views = saved_views.list_views(self.project_id, self.actor, ListPage(page) if page else None)
        return self.page(views, SavedViewSerializer)

    @operation(
        "saveView",
        "Save a view",
        body=NewViewSerializer,
        answer=SavedViewSerializer,
        status=201,
        also={(200, "application/json"): SavedViewSerializer},
    )
    def create(self, request: Request) -> Response:
        """Saves filters, order and columns of a list under a name: 201, or 200 in the place of a view of that name."""
        body = self.valid_body(NewViewSerializer)
        view, made = saved_views.save_view(project_id=self.project_id, owner=self.actor, **body.validated_data)
        return Response(SavedViewSerializer(view).data, status=201 if made else 200)

    @operation("deleteView", "Delete a saved view", status=204, errors=[404])
    def destroy(self, request: Request, view_id: UUID) -> Response:
        saved_views.delete_view(project_id=self.project_id, owner=self.actor, view_id=view_id)
        return Response(status=204)
