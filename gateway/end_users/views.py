"""The endpoints of the limits of end users."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.shortcuts import get_object_or_404
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import ConflictError
from core.openapi import PAGE, operation
from core.pagination import LimitOffset
from core.views import ProjectAPIView
from gateway.end_user_models import MAX_END_USERS, EndUserLimit
from gateway.end_users.serializers import (
    EndUserChangeSerializer,
    EndUserLimitSerializer,
    EndUserParameters,
    NewEndUserLimitSerializer,
)


class EndUserLimitsView(ProjectAPIView):
    @operation(
        "listEndUserLimits", "List limits of end users", query=[PAGE, EndUserParameters], page=EndUserLimitSerializer
    )
    def get(self, request: Request) -> Response:
        """The end users that have limits by name, in the order of their names."""
        parameters = EndUserParameters(data=request.query_params)
        parameters.is_valid(raise_exception=True)
        rows = EndUserLimit.objects.for_project(self.project_id)
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
        if EndUserLimit.objects.for_project(self.project_id).count() >= MAX_END_USERS:
            raise ConflictError(f"A project limits at most {MAX_END_USERS} end users by name.", code="too_many_users")
        try:
            with transaction.atomic():
                row = EndUserLimit.objects.create(project_id=self.project_id, **given.validated_data)
        except IntegrityError:
            raise ConflictError("The end user has limits already.", code="end_user_limit_exists") from None
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
        row = self._row(limit_id)
        for name, value in given.validated_data.items():
            setattr(row, name, value)
        row.save()
        return Response(EndUserLimitSerializer(row).data)

    @operation("deleteEndUserLimit", "Take the limits of an end user away", status=204, errors=[404])
    def delete(self, request: Request, limit_id: int) -> Response:
        """The project's limits for every user hold for this one again."""
        self._row(limit_id).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _row(self, limit_id: int) -> EndUserLimit:
        return get_object_or_404(EndUserLimit.objects.for_project(self.project_id), pk=limit_id)
