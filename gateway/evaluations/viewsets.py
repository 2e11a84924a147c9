"""The endpoint that tries an evaluator. Evaluators themselves belong to `analytics.viewsets.evaluators`."""

from __future__ import annotations

from uuid import UUID

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.evaluators.definitions import read_definition
from analytics.evaluators.selectors import get_version
from core.api.throttles import ProjectThrottle
from core.api.viewsets import ProjectViewSet
from core.openapi import operation
from gateway.evaluations.dry_run import try_evaluator
from gateway.evaluations.serializers import EvaluatorDryRun, EvaluatorDryRunSerializer, dry_run_entry


class DryRunThrottle(ProjectThrottle):
    """The limit of dry runs, which may ask a judge for each of their requests."""

    scope = "evaluator_dry_runs"
    rate = "30/min"


class EvaluatorDryRunViewSet(ProjectViewSet):
    lookup_url_kwarg = "evaluator_id"
    lookup_value_converter = "uuid"

    @operation(
        "dryRunEvaluator",
        "Try an evaluator on requests of the log",
        body=EvaluatorDryRunSerializer,
        answer=EvaluatorDryRun,
        errors=[404, 429],
    )
    @action(detail=True, methods=["post"], url_path="dry-run", throttle_classes=[DryRunThrottle])
    def dry_run(self, request: Request, evaluator_id: UUID) -> Response:
        """Returns a score for each request, or the reason why there is none, and what it cost. No score is kept."""
        given = self.valid_body(EvaluatorDryRunSerializer).validated_data
        version = get_version(self.project_id, evaluator_id)
        definition = version.definition
        if given.get("definition") is not None:
            definition = read_definition(definition.kind, given["definition"])
        tried = try_evaluator(
            project_id=self.project_id,
            definition=definition,
            request_ids=list(dict.fromkeys(given["request_ids"])),
            actor=self.actor,
            expected=given.get("expected"),
        )
        return Response(dry_run_entry(tried, good_from=version.good_from, sees_content=self.sees_content))
