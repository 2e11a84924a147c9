"""The endpoints of the limits of end users."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset
from gateway.end_users.serializers import (
    EndUserChangeSerializer,
    EndUserLimitSerializer,
    EndUserParameters,
    NewEndUserLimitSerializer,
)
from gateway.end_users.services import change_limit, create_limit, list_limits
from gateway.tables.end_user import EndUserLimit


class EndUserLimitsView(ProjectAPIView):
    @operation(
        "listEndUserLimits", "List limits of end users", query=[PAGE, EndUserParameters], page=EndUserLimitSerializer
    )
    def get(self, request: Request) -> Response:
        """The end users that have limits by name, in the order of their names."""
        parameters = EndUserParameters(data=request.query_params)
        parameters.is_valid(raise_exception=True)
        rows = list_limits(self.project_id)
        if user_id := parameters.validated_data["user_id"]:
            rows = rows.filter(user_id=user_id)
        paginator = LimitOffset()
        page = paginator.paginate_queryset(rows, request, self)
        return paginator.get_paginated_response(EndUserLimitSerializer(page, many=True).data)

    @operation(
        "createEndUserLimit",
        "Limit an end user",
        body=NewEndUserLimitSerializer,
        answer=EndUserLimitSerializer,
        status=201,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        """These limits hold for the user in place of the project's for every user."""
        given = NewEndUserLimitSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        row = create_limit(self.project_id, given.validated_data)
        return Response(EndUserLimitSerializer(row).data, status=status.HTTP_201_CREATED)


class EndUserLimitView(ProjectAPIView):
    @operation("getEndUserLimit", "The limits of one end user", answer=EndUserLimitSerializer, errors=[404])
    def get(self, request: Request, limit_id: int) -> Response:
        return Response(EndUserLimitSerializer(self._row(limit_id)).data)

    @operation(
        "changeEndUserLimit",
        "Change the limits of an end user",
        body=EndUserChangeSerializer,
        answer=EndUserLimitSerializer,
        errors=[404],
    )
    def patch(self, request: Request, limit_id: int) -> Response:
        """Omitted limits stay as they are."""
        given = EndUserChangeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        row = change_limit(self._row(limit_id), given.validated_data)
        return Response(EndUserLimitSerializer(row).data)

    @operation("deleteEndUserLimit", "Take the limits of an end user away", status=204, errors=[404])
    def delete(self, request: Request, limit_id: int) -> Response:
        """The project's limits for every user hold for this one again."""
        self._row(limit_id).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _row(self, limit_id: int) -> EndUserLimit:
        return get_object_or_404(list_limits(self.project_id), pk=limit_id)
