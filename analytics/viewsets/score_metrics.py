"""The endpoints of figures about scores and feedback, from their copies in ClickHouse."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE
from analytics.parameters.scores import ScoreMetricsParameters, ScoreRangeParameters
from analytics.presenters import scores
from analytics.wire.score_metrics import FeedbackDay, ScoreFigures
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import listing_response, parse_page


class ScoreMetricsViewSet(ProjectViewSet):
    @operation(
        "scoreMetrics",
        "Figures about scores",
        query=[PAGE, ScoreMetricsParameters],
        page=ScoreFigures,
        page_fields={**RANGE, "group_by": str},
    )
    @action(detail=False)
    def scores(self, request: Request) -> Response:
        """The figures are per score name, and per model, prompt version, arm or evaluator with `group_by`; ordered by
        name."""
        page = parse_page(request)
        filters, group_by = ScoreMetricsParameters(data=request.query_params.dict()).to_filter_and_grouping()
        return listing_response(request, page, scores.score_metrics(self.project_id, filters, group_by, page))

    @operation(
        "feedbackMetrics",
        "Figures about feedback, per day",
        query=[PAGE, ScoreRangeParameters],
        page=FeedbackDay,
        page_fields=RANGE,
    )
    @action(detail=False)
    def feedback(self, request: Request) -> Response:
        """The figures are per UTC day that has feedback, the earliest first."""
        page = parse_page(request)
        given = self.valid_query(ScoreRangeParameters)
        start, end = given.between()
        return listing_response(request, page, scores.feedback_metrics(self.project_id, start, end, page))
