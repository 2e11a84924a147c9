"""The endpoints of the limits of end users."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from gateway.end_users.serializers import (
    EndUserChangeSerializer,
    EndUserLimitSerializer,
    EndUserParameters,
    NewEndUserLimitSerializer,
)
from gateway.end_users.services import change_limit, create_limit, list_limits
from gateway.tables.end_user import EndUserLimit


class EndUserLimitViewSet(ProjectViewSet):
    lookup_url_kwarg = "limit_id"
    lookup_value_converter = "int"

    @operation(
        "listEndUserLimits", "List limits of end users", query=[PAGE, EndUserParameters], page=EndUserLimitSerializer
    )
    def list(self, request: Request) -> Response:
        """The end users that have limits by name, in the order of their names."""
        rows = list_limits(self.project_id)
        if user_id := self.valid_query(EndUserParameters).validated_data["user_id"]:
            rows = rows.filter(user_id=user_id)
        return self.page(rows, EndUserLimitSerializer)

    @operation(
        "createEndUserLimit",
        "Limit an end user",
        body=NewEndUserLimitSerializer,
        answer=EndUserLimitSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """These limits hold for the user in place of the project's for every user."""
        given = self.valid_body(NewEndUserLimitSerializer).validated_data
        row = create_limit(self.project_id, given)
        return Response(EndUserLimitSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation("getEndUserLimit", "The limits of one end user", answer=EndUserLimitSerializer, errors=[404])
    def retrieve(self, request: Request, limit_id: int) -> Response:
        return Response(EndUserLimitSerializer(self._row(limit_id)).data)

    @operation(
        "changeEndUserLimit",
        "Change the limits of an end user",
        body=EndUserChangeSerializer,
        answer=EndUserLimitSerializer,
        errors=[404],
    )
    def partial_update(self, request: Request, limit_id: int) -> Response:
        """Omitted limits stay as they are."""
        given = self.valid_body(EndUserChangeSerializer).validated_data
        row = change_limit(self._row(limit_id), given)
        return Response(EndUserLimitSerializer(row).data)

    @operation("deleteEndUserLimit", "Take the limits of an end user away", status=204, errors=[404])
    def destroy(self, request: Request, limit_id: int) -> Response:
        """The project's limits for every user hold for this one again."""
        self._row(limit_id).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _row(self, limit_id: int) -> EndUserLimit:
        return get_object_or_404(list_limits(self.project_id), pk=limit_id)
