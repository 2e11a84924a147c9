"""The endpoints of the figures about a project: its traffic, errors, providers, guardrails, scores and feedback."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from rest_framework import serializers as fields
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE, OperationParameters, parse_operation
from analytics.parameters.ranges import parse_range
from analytics.parameters.scores import BadRatingParameters, FeedbackMetricsParameters, ScoreMetricsParameters
from analytics.presenters import guardrails, metrics, providers, scores
from analytics.queries.bad_ratings import BadRatingFigures
from analytics.queries.error_groups import ErrorGroup
from analytics.queries.feedback import FeedbackFigures
from analytics.queries.groups import (
    ErrorKind,
    ModelFigures,
    OperationFigures,
    Overview,
    PromptFigures,
    PromptGrouping,
    Totals,
)
from analytics.queries.guardrails import GuardrailFigures, GuardrailInterval, GuardrailVerdictEntry
from analytics.queries.prompt_cache import PromptCacheFigures
from analytics.queries.provider_history import Failover
from analytics.queries.scores import ScoreFigures
from analytics.queries.usage import Interval, IntervalFigures
from analytics.queries.users import UserFigures
from analytics.viewsets.ranged import Figures, FiguresViewSet
from analytics.wire import providers as wire
from analytics.wire.providers import ProviderLatencies
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import listing_response, parse_page
from core.wire.parameters import Parameters, RangeParameters


class PromptParameters(Parameters):
    group_by = fields.ChoiceField(choices=[str(grouping) for grouping in PromptGrouping], required=False)
    prompt_config_id = fields.UUIDField(required=False)


class UsageParameters(Parameters):
    interval = fields.ChoiceField(choices=[str(interval) for interval in Interval], required=False)


class MetricsViewSet(FiguresViewSet):
    figures = {
        "users": Figures(
            "userMetrics",
            "Figures per user",
            metrics.users,
            UserFigures,
            [OperationParameters],
            {"without_user_id": UserFigures | None},
        ),
        "prompt-cache": Figures(
            "promptCacheMetrics",
            "What the vendors' prompt caches saved and missed",
            metrics.prompt_caches,
            PromptCacheFigures,
            description=("By model and version of a prompt. The figures are of the last 30 days of the range at most."),
            max_length=metrics.OVERVIEW,
        ),
        "models": Figures("modelMetrics", "Figures per model", metrics.models, ModelFigures, [OperationParameters]),
        "operations": Figures(
            "operationMetrics",
            "Figures per operation",
            metrics.operations,
            OperationFigures,
            description="An operation is the protocol of the client: chat, responses, messages, embeddings and so on.",
        ),
        "prompts": Figures(
            "promptMetrics",
            "Figures per prompt version",
            metrics.prompts,
            PromptFigures,
            [PromptParameters],
            {"group_by": PromptGrouping},
            "The list has every version that served a request, or every config with `group_by=config`, whose"
            " `prompt_version` is null.",
        ),
        "usage": Figures(
            "usageMetrics",
            "Figures per minute, hour or day",
            metrics.usage,
            IntervalFigures,
            [OperationParameters, UsageParameters],
            {"interval": Interval},
            "The list has every minute, hour or UTC day that the range touches, the latest first.",
        ),
    }

    @operation("overview", "Totals of a project", query=[RangeParameters, OperationParameters], answer=Overview)
    @action(detail=False)
    def overview(self, request: Request) -> Response:
        """The figures are of the last 30 days of the range at most; the answer names its own range."""
        time_range = parse_range(request, max_length=metrics.OVERVIEW)
        return Response(metrics.overview(self.project_id, time_range, parse_operation(request)))

    @operation(
        "totals", "Totals of a range with percentiles", query=[RangeParameters, OperationParameters], answer=Totals
    )
    @action(detail=False)
    def totals(self, request: Request) -> Response:
        return Response(metrics.totals(self.project_id, parse_range(request), parse_operation(request)))

    @operation("providerLatency", "Live latency of providers", answer=ProviderLatencies)
    @action(detail=False, url_path="provider-latency")
    def provider_latency(self, request: Request) -> Response:
        """The latencies are those of the last five minutes, of every usable provider of the project, as routing sees
        them."""
        return Response(metrics.provider_latencies(self.project_id))


class ErrorMetricsViewSet(FiguresViewSet):
    figures = {
        "list": Figures(
            "errorMetrics",
            "What failed, and how often",
            metrics.errors,
            ErrorKind,
            [OperationParameters],
            {"total_errors": int},
        ),
        "groups": Figures(
            "errorGroups",
            "Errors by provider, model and code",
            providers.error_groups,
            ErrorGroup,
            [OperationParameters],
            {"interval": Interval, "starts": list[datetime], "total_errors": int},
            "The most frequent come first. `counts` of a group are its errors in the intervals that begin at `starts`,"
            " and `sample_request_id` is its latest request.",
        ),
    }


class ProviderHistoryParameters(Parameters):
    interval_minutes = fields.ChoiceField(choices=providers.INTERVAL_MINUTES, required=False)


class ProviderMetricsViewSet(FiguresViewSet):
    figures = {
        "failovers": Figures(
            "failovers",
            "Which model or provider replaced which",
            providers.failovers,
            Failover,
            fields={"total_failovers": int},
            description=(
                "The range is at most seven days long. `served_count` of the requests were answered by the next one."
            ),
            max_length=providers.MAX_RANGE,
        ),
    }

    @operation(
        "providerHistory",
        "Requests and errors of each provider over time",
        query=[RangeParameters, ProviderHistoryParameters],
        answer=wire.ProviderHistories,
    )
    @action(detail=False)
    def history(self, request: Request) -> Response:
        """The range is at most seven days long. A request that went on to another provider counts as a failure of the
        one that it left."""
        time_range = parse_range(request, max_length=providers.MAX_RANGE)
        given = self.valid_query(ProviderHistoryParameters).validated_data
        return Response(providers.provider_history(self.project_id, time_range, **given))


_MAX_VERDICTS = 200
_NAME_CHARACTERS = 64


class IntervalParameters(Parameters):
    interval = fields.ChoiceField(required=False, choices=[str(Interval.HOUR), str(Interval.DAY)])


class VerdictParameters(Parameters):
    guardrail = fields.CharField(required=False, allow_blank=True, max_length=_NAME_CHARACTERS)
    action = fields.CharField(required=False, allow_blank=True, max_length=_NAME_CHARACTERS)
    limit = fields.IntegerField(required=False, default=20, min_value=1, max_value=_MAX_VERDICTS)


class GuardrailRequests(TypedDict):
    start_date: datetime
    end_date: datetime
    results: list[GuardrailVerdictEntry]


class GuardrailMetricsViewSet(FiguresViewSet):
    figures = {
        "list": Figures(
            "guardrailMetrics",
            "What each guardrail found",
            guardrails.guardrails,
            GuardrailFigures,
            description="The requests in which each guardrail found something, by action; ordered by findings, then by"
            " name.",
        ),
        "usage": Figures(
            "guardrailUsage",
            "What guardrails found over time",
            guardrails.guardrail_usage,
            GuardrailInterval,
            [IntervalParameters],
            {"interval": str},
            "The findings per hour or UTC day, the latest first; intervals without findings are left out.",
        ),
    }


class GuardrailFindingViewSet(ProjectViewSet):
    @operation(
        "listGuardrailRequests",
        "The newest requests that guardrails found something in",
        query=[RangeParameters, VerdictParameters],
        answer=GuardrailRequests,
    )
    @action(detail=False)
    def requests(self, request: Request) -> Response:
        """The newest verdicts, one for each finding. `detail` is null for a reader without content."""
        time_range = parse_range(request)
        given = self.valid_query(VerdictParameters).validated_data
        results = guardrails.verdicts(self.project_id, time_range, **given, content=self.sees_content)
        return Response({"start_date": time_range.start, "end_date": time_range.end, "results": results})


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
