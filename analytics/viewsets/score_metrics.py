"""The endpoints of figures about scores and feedback, from their copies in ClickHouse."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE
from analytics.parameters.scores import BadRatingParameters, FeedbackMetricsParameters, ScoreMetricsParameters
from analytics.presenters import scores
from analytics.wire.score_metrics import BadRatingFigures, FeedbackFigures, ScoreFigures
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
        query=[PAGE, FeedbackMetricsParameters],
        page=FeedbackFigures,
        page_fields={**RANGE, "group_by": str},
    )
    @action(detail=False)
    def feedback(self, request: Request) -> Response:
        """The figures are per UTC day that has feedback, the earliest first. With `group_by` they are per model, prompt
        version or arm of the requests that the feedback names."""
        page = parse_page(request)
        given = self.valid_query(FeedbackMetricsParameters)
        start, end = given.between()
        group_by = given.validated_data["group_by"]
        return listing_response(request, page, scores.feedback_metrics(self.project_id, start, end, page, group_by))

    @operation(
        "badRatingMetrics",
        "Answers rated bad within a day, per prompt version",
        query=[PAGE, BadRatingParameters],
        page=BadRatingFigures,
        page_fields=RANGE,
    )
    @action(detail=False, url_path="bad-ratings")
    def bad_ratings(self, request: Request) -> Response:
        """Of the answered requests made in the range, the share that feedback with a score of 1 or 2 named within 24
        hours. Requests younger than that are counted apart."""
        page = parse_page(request)
        given = self.valid_query(BadRatingParameters)
        start, end = given.between()
        config_id = given.validated_data.get("prompt_config_id")
        found = scores.bad_rating_metrics(self.project_id, start, end, page, config_id)
        return listing_response(request, page, found)
