"""The endpoints of the figures about a project."""

from __future__ import annotations

from rest_framework import serializers as fields
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE, OperationParameters, RangeParameters, parse_operation
from analytics.parameters.ranges import parse_range
from analytics.presenters import metrics
from analytics.queries.prompt_figures import PromptGrouping
from analytics.queries.usage import Interval
from analytics.wire import metrics as wire
from analytics.wire.prompt_cache import PromptCacheFigures
from analytics.wire.provider_latency import ProviderLatencies
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import listing_response, parse_page
from core.wire.parameters import Parameters


class PromptParameters(Parameters):
    group_by = fields.ChoiceField(choices=[str(grouping) for grouping in PromptGrouping], required=False)
    prompt_config_id = fields.UUIDField(required=False)


class UsageParameters(Parameters):
    interval = fields.ChoiceField(choices=[str(interval) for interval in Interval], required=False)


class MetricsViewSet(ProjectViewSet):
    @operation("overview", "Totals of a project", query=[RangeParameters, OperationParameters], answer=wire.Overview)
    @action(detail=False)
    def overview(self, request: Request) -> Response:
        """The figures are of the last 30 days of the range at most; the answer names its own range."""
        time_range = parse_range(request, max_length=metrics.OVERVIEW)
        return Response(metrics.overview(self.project_id, time_range, parse_operation(request)))

    @operation(
        "totals", "Totals of a range with percentiles", query=[RangeParameters, OperationParameters], answer=wire.Totals
    )
    @action(detail=False)
    def totals(self, request: Request) -> Response:
        return Response(metrics.totals(self.project_id, parse_range(request), parse_operation(request)))

    @operation(
        "userMetrics",
        "Figures per user",
        query=[PAGE, RangeParameters, OperationParameters],
        page=wire.UserFigures,
        page_fields={**RANGE, "without_user_id": wire.UserFigures | None},
    )
    @action(detail=False)
    def users(self, request: Request) -> Response:
        page, time_range = parse_page(request), parse_range(request)
        return listing_response(
            request, page, metrics.users(self.project_id, time_range, page, parse_operation(request))
        )

    @operation(
        "promptCacheMetrics",
        "What the vendors' prompt caches saved and missed",
        query=[PAGE, RangeParameters],
        page=PromptCacheFigures,
        page_fields=RANGE,
    )
    @action(detail=False, url_path="prompt-cache")
    def prompt_cache(self, request: Request) -> Response:
        """By model and version of a prompt. The figures are of the last 30 days of the range at most."""
        page, time_range = parse_page(request), parse_range(request, max_length=metrics.OVERVIEW)
        return listing_response(request, page, metrics.prompt_caches(self.project_id, time_range, page))

    @operation(
        "modelMetrics",
        "Figures per model",
        query=[PAGE, RangeParameters, OperationParameters],
        page=wire.ModelFigures,
        page_fields=RANGE,
    )
    @action(detail=False)
    def models(self, request: Request) -> Response:
        page, time_range = parse_page(request), parse_range(request)
        return listing_response(
            request, page, metrics.models(self.project_id, time_range, page, parse_operation(request))
        )

    @operation(
        "operationMetrics",
        "Figures per operation",
        query=[PAGE, RangeParameters],
        page=wire.OperationFigures,
        page_fields=RANGE,
    )
    @action(detail=False)
    def operations(self, request: Request) -> Response:
        """An operation is the protocol of the client: chat, responses, messages, embeddings and so on."""
        page, time_range = parse_page(request), parse_range(request)
        return listing_response(request, page, metrics.operations(self.project_id, time_range, page))

    @operation(
        "promptMetrics",
        "Figures per prompt version",
        query=[PAGE, RangeParameters, PromptParameters],
        page=wire.PromptFigures,
        page_fields={**RANGE, "group_by": PromptGrouping},
    )
    @action(detail=False)
    def prompts(self, request: Request) -> Response:
        """The list has every version that served a request, or every config with `group_by=config`, whose
        `prompt_version` is null."""
        page, time_range = parse_page(request), parse_range(request)
        given = self.valid_query(PromptParameters)
        grouping = PromptGrouping(given.validated_data.get("group_by", PromptGrouping.VERSION))
        config_id = given.validated_data.get("prompt_config_id")
        return listing_response(request, page, metrics.prompts(self.project_id, time_range, page, grouping, config_id))

    @operation(
        "usageMetrics",
        "Figures per minute, hour or day",
        query=[PAGE, RangeParameters, OperationParameters, UsageParameters],
        page=wire.IntervalFigures,
        page_fields={**RANGE, "interval": Interval},
    )
    @action(detail=False)
    def usage(self, request: Request) -> Response:
        """The list has every minute, hour or UTC day that the range touches, the latest first."""
        page, time_range = parse_page(request), parse_range(request)
        given = self.valid_query(UsageParameters)
        named = given.validated_data.get("interval")
        interval = Interval(named) if named else None
        found = metrics.usage(self.project_id, time_range, page, interval, parse_operation(request))
        return listing_response(request, page, found)

    @operation("providerLatency", "Live latency of providers", answer=ProviderLatencies)
    @action(detail=False, url_path="provider-latency")
    def provider_latency(self, request: Request) -> Response:
        """The latencies are those of the last five minutes, of every usable provider of the project, as routing sees
        them."""
        return Response(metrics.provider_latencies(self.project_id))
