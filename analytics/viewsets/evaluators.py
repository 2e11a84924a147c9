"""The endpoints of evaluators (docs/evaluators.md)."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.evaluators import services
from analytics.evaluators.calibration.calibrate import calibrate
from analytics.evaluators.calibration.wire import EvaluatorCalibration, calibration_entry
from analytics.evaluators.selectors import get_with_versions, list_with_versions
from analytics.serializers.evaluators import (
    CalibrationParameters,
    EvaluatorChangeSerializer,
    EvaluatorParameters,
    EvaluatorSerializer,
    NewEvaluatorSerializer,
    NewEvaluatorVersionSerializer,
)
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation


class EvaluatorViewSet(ProjectViewSet):
    lookup_url_kwarg = "evaluator_id"
    lookup_value_converter = "uuid"

    @operation("listEvaluators", "List evaluators", query=[PAGE, EvaluatorParameters], page=EvaluatorSerializer)
    def list(self, request: Request) -> Response:
        """All of the project, by name."""
        given = EvaluatorParameters(data=request.query_params)
        given.is_valid(raise_exception=True)
        return self.page(list_with_versions(self.project_id).filter(**given.validated_data), EvaluatorSerializer)

    @operation(
        "createEvaluator",
        "Make an evaluator",
        body=NewEvaluatorSerializer,
        answer=EvaluatorSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """It has one version. A kind never changes; a definition changes by a further version."""
        body = self.valid_body(NewEvaluatorSerializer)
        given = body.validated_data
        row = services.create_evaluator(
            project_id=self.project_id,
            name=given["name"],
            kind=given["kind"],
            description=given["description"],
            first=body.new_version(),
            actor=self.actor,
        )
        return Response(self._entry(row.pk), status=status.HTTP_201_CREATED)

    @operation("getEvaluator", "One evaluator with its versions", answer=EvaluatorSerializer, errors=[404])
    def retrieve(self, request: Request, evaluator_id: UUID) -> Response:
        return Response(self._entry(evaluator_id))

    @operation(
        "changeEvaluator",
        "Rename, describe or archive an evaluator",
        body=EvaluatorChangeSerializer,
        answer=EvaluatorSerializer,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, evaluator_id: UUID) -> Response:
        """Omitted fields stay as they are. What an archived evaluator scored stays."""
        given = self.valid_body(EvaluatorChangeSerializer).validated_data
        services.change_evaluator(project_id=self.project_id, evaluator_id=evaluator_id, values=given)
        return Response(self._entry(evaluator_id))

    @operation(
        "createEvaluatorVersion",
        "Change the definition of an evaluator",
        body=NewEvaluatorVersionSerializer,
        answer=EvaluatorSerializer,
        status=201,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def versions(self, request: Request, evaluator_id: UUID) -> Response:
        """Makes a version, unless the newest one is the same. Earlier scores keep the version that gave them."""
        new = self.valid_body(NewEvaluatorVersionSerializer).new_version()
        services.add_version(project_id=self.project_id, evaluator_id=evaluator_id, new=new, actor=self.actor)
        return Response(self._entry(evaluator_id), status=status.HTTP_201_CREATED)

    @operation(
        "getEvaluatorCalibration",
        "How far an evaluator agrees with people",
        query=[CalibrationParameters],
        answer=EvaluatorCalibration,
        errors=[404],
    )
    @action(detail=True)
    def calibration(self, request: Request, evaluator_id: UUID) -> Response:
        """Compares the scores of a version, the newest by default, with the labels that people gave in review queues of
        this evaluator."""
        given = CalibrationParameters(data=request.query_params)
        given.is_valid(raise_exception=True)
        found = calibrate(self.project_id, evaluator_id, given.validated_data.get("version"))
        return Response(calibration_entry(found))

    def _entry(self, evaluator_id: UUID) -> object:
        return EvaluatorSerializer(get_with_versions(self.project_id, evaluator_id)).data
