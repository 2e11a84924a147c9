"""Docs: docs/online-evaluations.md. The endpoints of evaluators are in `analytics.viewsets.evaluators`."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.evaluators.definitions import read_definition
from analytics.evaluators.selectors import get_version
from analytics.online_evaluations.selectors import get_online_evaluation, list_online_evaluations, progress_of
from analytics.online_evaluations.wire import (
    OnlineEvaluationDetail,
    OnlineEvaluationEntry,
    evaluation_detail,
    evaluation_entry,
)
from core.api.throttles import ProjectThrottle
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from gateway.evaluations import services
from gateway.evaluations.dry_run import try_evaluator
from gateway.evaluations.serializers import (
    EvaluatorDryRun,
    EvaluatorDryRunSerializer,
    NewOnlineEvaluationSerializer,
    OnlineEvaluationChangeSerializer,
    OnlineEvaluationParameters,
    dry_run_entry,
    require_both_arms,
)


class DryRunThrottle(ProjectThrottle):
    """A dry run may ask a judge for each of its requests."""

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


class OnlineEvaluationViewSet(ProjectViewSet):
    lookup_url_kwarg = "evaluation_id"
    lookup_value_converter = "uuid"

    @operation(
        "listOnlineEvaluations",
        "List online evaluations",
        query=[PAGE, OnlineEvaluationParameters],
        page=OnlineEvaluationEntry,
    )
    def list(self, request: Request) -> Response:
        """The list has the newest first."""
        given = self.valid_query(OnlineEvaluationParameters).validated_data
        rows = self.rows_of_page(list_online_evaluations(self.project_id).filter(**given))
        return self.get_paginated_response([evaluation_entry(row) for row in rows])

    @operation(
        "createOnlineEvaluation",
        "Score a sample of the answers by an evaluator",
        body=NewOnlineEvaluationSerializer,
        answer=OnlineEvaluationDetail,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The sample is taken of requests that arrive from now on, by a hash of their ids. A project has at most five
        active ones."""
        new = self.valid_body(NewOnlineEvaluationSerializer).new_evaluation()
        services.require_judge(project_id=self.project_id, new=new)
        row = services.create_online_evaluation(project_id=self.project_id, new=new, actor=self.actor)
        return Response(self._detail(row.pk), status=status.HTTP_201_CREATED)

    @operation(
        "getOnlineEvaluation",
        "One online evaluation, with what is due, done, failed and skipped",
        answer=OnlineEvaluationDetail,
        errors=[404],
    )
    def retrieve(self, request: Request, evaluation_id: UUID) -> Response:
        return Response(self._detail(evaluation_id))

    @operation(
        "changeOnlineEvaluation",
        "Change, pause or resume an online evaluation",
        body=OnlineEvaluationChangeSerializer,
        answer=OnlineEvaluationDetail,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, evaluation_id: UUID) -> Response:
        """Omitted fields stay as they are. While it is paused no sample is taken, and what is due is skipped."""
        given = self.valid_body(OnlineEvaluationChangeSerializer).validated_data
        row = get_online_evaluation(self.project_id, evaluation_id)
        require_both_arms(given.get("filter", row.filter), matched=given.get("matched", row.matched))
        services.change_online_evaluation(
            project_id=self.project_id, evaluation_id=evaluation_id, values=given, actor=self.actor
        )
        return Response(self._detail(evaluation_id))

    @operation("deleteOnlineEvaluation", "Delete an online evaluation", status=204, errors=[404])
    def destroy(self, request: Request, evaluation_id: UUID) -> Response:
        """Scores stay. What is due is skipped."""
        services.delete_online_evaluation(project_id=self.project_id, evaluation_id=evaluation_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _detail(self, evaluation_id: UUID) -> object:
        row = get_online_evaluation(self.project_id, evaluation_id)
        return evaluation_detail(row, progress_of(row))
