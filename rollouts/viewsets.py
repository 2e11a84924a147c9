"""The HTTP API of rollouts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema_view
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from core.http.arrival import arrived_at
from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from rollouts import shapes
from rollouts.allocation import AllocationType
from rollouts.comparison.metrics import compare
from rollouts.comparison.wire import comparison, planned
from rollouts.filters import RolloutFilter
from rollouts.forecasts.plan import plan_rollout
from rollouts.models import Rollout
from rollouts.selectors import get_rollout, list_rollouts
from rollouts.serializers import (
    MoveSerializer,
    NewRolloutSerializer,
    PlanSerializer,
    PromotionSerializer,
    RolloutDetailSerializer,
    RolloutSerializer,
)
from rollouts.services import create_rollout, promote_rollout, start_rollout


@extend_schema_view(get=operation("listRollouts", "List rollouts", query=[PAGE], page=shapes.RolloutEntry))
class RolloutsView(ProjectAPIView, ListAPIView[Rollout]):
    serializer_class = RolloutSerializer
    filterset_class = RolloutFilter

    @override
    def get_queryset(self) -> QuerySet[Rollout]:
        return list_rollouts(self.project_id)

    @operation(
        "createRollout",
        "Make a rollout",
        body=NewRolloutSerializer,
        answer=shapes.RolloutDetail,
        status=201,
        errors=[404, 409],
    )
    def post(self, request: Request) -> Response:
        body = NewRolloutSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = create_rollout(project_id=self.project_id, new=body.new_rollout(), actor=self.actor)
        return Response(detail(self.project_id, row.pk), status=status.HTTP_201_CREATED)


class ForecastView(ProjectAPIView):
    @operation(
        "forecastRollout",
        "Forecast a rollout before it is made",
        body=PlanSerializer,
        answer=shapes.RolloutPlan,
        errors=[404],
    )
    def post(self, request: Request) -> Response:
        """Makes nothing: returns how long the stages take, and which faults would be found, at the traffic of the last
        24 hours. 503 while the request log does not answer."""
        body = PlanSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        allocation = AllocationType(data["allocation_type"])
        return Response(planned(plan_rollout(self.project_id, data["config_id"], data["stages"], allocation)))


class RolloutView(ProjectAPIView):
    @operation("getRollout", "One rollout, with its history", answer=shapes.RolloutDetail, errors=[404])
    def get(self, request: Request, rollout_id: UUID) -> Response:
        return Response(detail(self.project_id, rollout_id))


class RolloutMetricsView(ProjectAPIView):
    @operation("rolloutMetrics", "Target and baseline compared", answer=shapes.RolloutComparison, errors=[404])
    def get(self, request: Request, rollout_id: UUID) -> Response:
        """Returns the comparison of both arms, or 503 while the request log does not answer; decisions do not depend
        on this."""
        rollout = get_rollout(self.project_id, rollout_id)
        return Response(comparison(rollout, compare(rollout)))


class MoveView(ProjectAPIView):
    """POST makes one transition, which the list of paths names, and returns the rollout after it."""

    service: Callable[..., Rollout] = staticmethod(start_rollout)

    @operation(
        "{last}Rollout",
        "Move a rollout: {last}",
        body=MoveSerializer,
        answer=shapes.RolloutDetail,
        errors=[404, 409],
        description="Answers with the rollout as it then is.",
    )
    def post(self, request: Request, rollout_id: UUID) -> Response:
        given = MoveSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        self.service(project_id=self.project_id, rollout_id=rollout_id, actor=self.actor, **given.validated_data)
        return Response(detail(self.project_id, rollout_id))


class PromoteView(ProjectAPIView):
    requested_at: datetime

    @override
    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        # The time of the call counts: of two simultaneous calls, the one that waited must not advance another stage.
        self.requested_at = arrived_at(request)
        super().setup(request, *args, **kwargs)

    @operation(
        "promoteRollout",
        "Advance a rollout by one stage",
        body=PromotionSerializer,
        answer=shapes.RolloutDetail,
        errors=[404, 409],
    )
    def post(self, request: Request, rollout_id: UUID) -> Response:
        given = PromotionSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        promote_rollout(
            project_id=self.project_id,
            rollout_id=rollout_id,
            actor=self.actor,
            requested_at=self.requested_at,
            **given.validated_data,
        )
        return Response(detail(self.project_id, rollout_id))


def detail(project_id: UUID, rollout_id: UUID) -> dict[str, Any]:
    return dict(RolloutDetailSerializer(get_rollout(project_id, rollout_id)).data)
