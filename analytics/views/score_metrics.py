"""Figures about scores and feedback, from their copies in ClickHouse."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters import RANGE
from analytics.queries.feedback import feedback_days
from analytics.queries.scores import ScoreFilter, score_figures
from analytics.serializers.score_metrics import (
    ScoreMetricsParameters,
    ScoreRangeParameters,
    feedback_day_entry,
    score_figures_entry,
)
from analytics.shapes import FeedbackDay, ScoreFigures
from core.openapi import PAGE, operation
from core.pagination import page_response, parse_page
from core.views import ProjectAPIView


class ScoreMetricsView(ProjectAPIView):
    @operation(
        "scoreMetrics",
        "Figures about scores",
        query=[PAGE, ScoreMetricsParameters],
        page=ScoreFigures,
        page_fields={**RANGE, "group_by": str},
    )
    def get(self, request: Request) -> Response:
        """Per score, and per model, prompt version, arm or evaluator with `group_by`; by name."""
        page = parse_page(request)
        given = ScoreMetricsParameters(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        start, end = given.between()
        wanted = ScoreFilter(
            start,
            end,
            score_name=given.validated_data.get("score_name", ""),
            score_type=given.validated_data.get("score_type", ""),
            evaluator_type=given.validated_data.get("evaluator_type", ""),
        )
        group_by = given.validated_data["group_by"]
        count, figures = score_figures(self.project_id, wanted, group_by, limit=page.limit, offset=page.offset)
        answer = page_response(request, page, count, [score_figures_entry(item, group_by) for item in figures])
        answer.data = {"start_date": start, "end_date": end, "group_by": group_by, **answer.data}
        return answer


class FeedbackMetricsView(ProjectAPIView):
    @operation(
        "feedbackMetrics",
        "Figures about feedback, per day",
        query=[PAGE, ScoreRangeParameters],
        page=FeedbackDay,
        page_fields=RANGE,
    )
    def get(self, request: Request) -> Response:
        """Per UTC day that has feedback, the earliest first."""
        page = parse_page(request)
        given = ScoreRangeParameters(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        start, end = given.between()
        count, days = feedback_days(self.project_id, start, end, limit=page.limit, offset=page.offset)
        answer = page_response(request, page, count, [feedback_day_entry(day) for day in days])
        answer.data = {"start_date": start, "end_date": end, **answer.data}
        return answer
