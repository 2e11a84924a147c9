from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.http.arrival import arrived_at
from core.openapi import PAGE, operation
from rollouts import services, shapes
from rollouts.allocation import AllocationType
from rollouts.comparison.wire import comparison, planned
from rollouts.forecasts.plan import plan_rollout
from rollouts.models import Rollout
from rollouts.quality.defaults import with_thresholds
from rollouts.selectors import RolloutFilter, get_rollout, list_rollouts
from rollouts.serializers import (
    BeginningSerializer,
    ForecastSerializer,
    MoveSerializer,
    NewRolloutSerializer,
    PromotionSerializer,
    RolloutDetailSerializer,
    RolloutSerializer,
)
from rollouts.verdicts.policies import policy_from


def _move(
    name: str, body: type[MoveSerializer] = MoveSerializer
) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    return operation(
        f"{name}Rollout",
        f"Move a rollout: {name}",
        body=body,
        answer=shapes.RolloutDetail,
        errors=[404, 409],
        description="Answers with the rollout as it then is.",
    )


class RolloutViewSet(ProjectViewSet):
    lookup_url_kwarg = "rollout_id"
    lookup_value_converter = "uuid"
    filterset_class = RolloutFilter
    requested_at: datetime

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        # The time of the call counts: of two simultaneous promotions, the later one must not advance another stage.
        self.requested_at = arrived_at(request)
        return super().initialize_request(request, *args, **kwargs)

    @operation("listRollouts", "List rollouts", query=[PAGE], page=shapes.RolloutEntry)
    def list(self, request: Request) -> Response:
        return self.page(list_rollouts(self.project_id), RolloutSerializer)

    @operation(
        "createRollout",
        "Make a rollout",
        body=NewRolloutSerializer,
        answer=shapes.RolloutDetail,
        status=201,
        errors=[404, 409],
    )
    def create(self, request: Request) -> Response:
        new = self.valid_body(NewRolloutSerializer).new_rollout()
        row = services.create_rollout(project_id=self.project_id, new=new, actor=self.actor)
        return Response(self._shown(row.pk), status=status.HTTP_201_CREATED)

    @operation("getRollout", "One rollout, with its history", answer=shapes.RolloutDetail, errors=[404])
    def retrieve(self, request: Request, rollout_id: UUID) -> Response:
        return Response(self._shown(rollout_id))

    @operation(
        "forecastRollout",
        "Forecast a rollout before it is made",
        body=ForecastSerializer,
        answer=shapes.RolloutPlan,
        errors=[404],
    )
    @action(detail=False, methods=["post"])
    def forecast(self, request: Request) -> Response:
        """Makes nothing: returns how long the stages take, and which faults would be found, at the traffic of the last
        24 hours. 503 while the request log does not answer."""
        data = self.valid_body(ForecastSerializer).validated_data
        allocation = AllocationType(data["allocation_type"])
        policy = policy_from(with_thresholds(self.project_id, data.get("policy") or {}))
        return Response(planned(plan_rollout(self.project_id, data["config_id"], data["stages"], allocation, policy)))

    @operation("rolloutMetrics", "Target and baseline compared", answer=shapes.RolloutComparison, errors=[404])
    @action(detail=True)
    def metrics(self, request: Request, rollout_id: UUID) -> Response:
        """Returns the comparison of both arms, or 503 while the request log does not answer; decisions do not depend
        on this."""
        return Response(comparison(get_rollout(self.project_id, rollout_id)))

    @_move("start", BeginningSerializer)
    @action(detail=True, methods=["post"])
    def start(self, request: Request, rollout_id: UUID) -> Response:
        return self._moved(services.start_rollout, rollout_id, BeginningSerializer)

    @_move("pause")
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, rollout_id: UUID) -> Response:
        return self._moved(services.pause_rollout, rollout_id)

    @_move("rollback")
    @action(detail=True, methods=["post"])
    def rollback(self, request: Request, rollout_id: UUID) -> Response:
        return self._moved(services.roll_back_rollout, rollout_id)

    @_move("complete", BeginningSerializer)
    @action(detail=True, methods=["post"])
    def complete(self, request: Request, rollout_id: UUID) -> Response:
        return self._moved(services.complete_rollout, rollout_id, BeginningSerializer)

    @operation(
        "promoteRollout",
        "Advance a rollout by one stage",
        body=PromotionSerializer,
        answer=shapes.RolloutDetail,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def promote(self, request: Request, rollout_id: UUID) -> Response:
        service = partial(services.promote_rollout, requested_at=self.requested_at)
        return self._moved(service, rollout_id, PromotionSerializer)

    def _moved(
        self, service: Callable[..., Rollout], rollout_id: UUID, body: type[MoveSerializer] = MoveSerializer
    ) -> Response:
        given = self.valid_body(body).validated_data
        service(project_id=self.project_id, rollout_id=rollout_id, actor=self.actor, **given)
        return Response(self._shown(rollout_id))

    def _shown(self, rollout_id: UUID) -> Mapping[str, Any]:
        return RolloutDetailSerializer(get_rollout(self.project_id, rollout_id)).data
