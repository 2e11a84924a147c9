"""The endpoints of errors by kind, and of the history of providers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers as fields
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE, OperationParameters, RangeParameters, parse_operation
from analytics.parameters.ranges import parse_range
from analytics.presenters import metrics, providers
from analytics.queries.usage import Interval
from analytics.wire import providers as wire
from analytics.wire.metrics import ErrorKind
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import listing_response, parse_page
from core.wire.parameters import Parameters

_OF_GROUPS: dict[str, Any] = {**RANGE, "interval": Interval, "starts": list[datetime], "total_errors": int}


class ErrorMetricsViewSet(ProjectViewSet):
    @operation(
        "errorMetrics",
        "What failed, and how often",
        query=[PAGE, RangeParameters, OperationParameters],
        page=ErrorKind,
        page_fields={**RANGE, "total_errors": int},
    )
    def list(self, request: Request) -> Response:
        page, time_range = parse_page(request), parse_range(request)
        return listing_response(
            request, page, metrics.errors(self.project_id, time_range, page, parse_operation(request))
        )

    @operation(
        "errorGroups",
        "Errors by provider, model and code",
        query=[PAGE, RangeParameters, OperationParameters],
        page=wire.ErrorGroup,
        page_fields=_OF_GROUPS,
    )
    @action(detail=False)
    def groups(self, request: Request) -> Response:
        """The most frequent come first. `counts` of a group are its errors in the intervals that begin at `starts`, and
        `sample_request_id` is its latest request."""
        page, time_range = parse_page(request), parse_range(request)
        found = providers.error_groups(self.project_id, time_range, page, parse_operation(request))
        return listing_response(request, page, found)


class ProviderHistoryParameters(Parameters):
    interval_minutes = fields.ChoiceField(choices=providers.INTERVAL_MINUTES, required=False)


class ProviderMetricsViewSet(ProjectViewSet):
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
        given = self.valid_query(ProviderHistoryParameters)
        minutes = given.validated_data.get("interval_minutes")
        return Response(providers.provider_history(self.project_id, time_range, int(minutes) if minutes else None))

    @operation(
        "failovers",
        "Which model or provider replaced which",
        query=[PAGE, RangeParameters],
        page=wire.Failover,
        page_fields={**RANGE, "total_failovers": int},
    )
    @action(detail=False)
    def failovers(self, request: Request) -> Response:
        """The range is at most seven days long. `served_count` of the requests were answered by the next one."""
        page = parse_page(request)
        time_range = parse_range(request, max_length=providers.MAX_RANGE)
        return listing_response(request, page, providers.failovers(self.project_id, time_range, page))
