"""The endpoints of online evaluations (docs/online-evaluations.md)."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.online_evaluations import services
from analytics.online_evaluations.selectors import get_online_evaluation, list_online_evaluations, progress_of
from analytics.online_evaluations.wire import (
    OnlineEvaluationDetail,
    OnlineEvaluationEntry,
    evaluation_detail,
    evaluation_entry,
)
from analytics.serializers.online_evaluations import (
    NewOnlineEvaluationSerializer,
    OnlineEvaluationChangeSerializer,
    OnlineEvaluationParameters,
    require_both_arms,
)
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import Listing, listing_response, parse_page


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
        page = parse_page(request)
        given = OnlineEvaluationParameters(data=request.query_params)
        given.is_valid(raise_exception=True)
        rows = list_online_evaluations(self.project_id).filter(**given.validated_data)
        chosen = rows[page.offset : page.offset + page.limit]
        return listing_response(request, page, Listing(rows.count(), [evaluation_entry(row) for row in chosen]))

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
