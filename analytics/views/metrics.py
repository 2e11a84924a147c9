"""Figures about a project."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers as fields
from rest_framework.request import Request
from rest_framework.response import Response

from analytics import shapes
from analytics.parameters import RANGE, RangeParameters
from analytics.queries.failures import list_failures
from analytics.queries.model_costs import list_model_costs
from analytics.queries.models import list_models
from analytics.queries.overview import get_overview
from analytics.queries.usage import Interval, list_usage
from analytics.queries.users import list_users
from analytics.ranges import DEFAULT_DAYS, TimeRange, parse_range
from analytics.serializers import metrics
from core.openapi import PAGE, operation
from core.pagination import Page, page_response, parse_page
from core.views import ProjectAPIView
from integrations.health.reader import project_health
from integrations.health.window import WINDOW_SECONDS

OVERVIEW_DAYS = DEFAULT_DAYS

# Up to which length a range is shown by minutes, and by hours.
_BY_MINUTES, _BY_HOURS = timedelta(hours=3), timedelta(days=7)


class OverviewView(ProjectAPIView):
    @operation("overview", "Totals of a project", query=[RangeParameters], answer=shapes.Overview)
    def get(self, request: Request) -> Response:
        """The last 30 days of the range asked for; the answer says which range it speaks of."""
        wanted = parse_range(request, longest=timedelta(days=OVERVIEW_DAYS))
        figures = metrics.overview(get_overview(self.project_id, wanted.start, wanted.end))
        return Response({"start_date": wanted.start, "end_date": wanted.end, **figures})


class UsersView(ProjectAPIView):
    @operation(
        "userMetrics",
        "Figures per user",
        query=[PAGE, RangeParameters],
        page=shapes.UserFigures,
        page_fields={**RANGE, "without_user_id": shapes.UserFigures | None},
    )
    def get(self, request: Request) -> Response:
        page, wanted = parse_page(request), parse_range(request)
        users = list_users(self.project_id, wanted.start, wanted.end, limit=page.limit, offset=page.offset)
        unnamed = metrics.user(users.unnamed) if users.unnamed else None
        results = [metrics.user(row) for row in users.page]
        return _envelope(request, page, wanted, users.count, results, without_user_id=unnamed)


class ModelsView(ProjectAPIView):
    @operation(
        "modelMetrics", "Figures per model", query=[PAGE, RangeParameters], page=shapes.ModelFigures, page_fields=RANGE
    )
    def get(self, request: Request) -> Response:
        page, wanted = parse_page(request), parse_range(request)
        count, rows = list_models(self.project_id, wanted.start, wanted.end, limit=page.limit, offset=page.offset)
        return _envelope(request, page, wanted, count, [metrics.model(row) for row in rows])


class DailyCostView(ProjectAPIView):
    @operation("dailyCost", "Cost per day", query=[PAGE, RangeParameters], page=shapes.DayCost, page_fields=RANGE)
    def get(self, request: Request) -> Response:
        """Every UTC day that the range touches, the latest first."""
        page, wanted = parse_page(request), parse_range(request)
        count, rows = list_usage(
            self.project_id,
            wanted.start,
            wanted.end,
            Interval.DAY,
            limit=page.limit,
            offset=page.offset,
            percentiles=False,
        )
        return _envelope(request, page, wanted, count, [metrics.day_cost(row) for row in rows])


class ModelCostView(ProjectAPIView):
    @operation(
        "modelCost",
        "Cost per model",
        query=[PAGE, RangeParameters],
        page=shapes.ModelCost,
        page_fields={**RANGE, "total_cost_usd": float},
    )
    def get(self, request: Request) -> Response:
        page, wanted = parse_page(request), parse_range(request)
        rows = list_model_costs(self.project_id, wanted.start, wanted.end)
        results = metrics.model_costs(rows)
        shown = results[page.offset : page.offset + page.limit]
        total = float(sum(row.cost_usd for row in rows))
        return _envelope(request, page, wanted, len(results), shown, total_cost_usd=total)


class UsageParameters(fields.Serializer[Any]):
    interval = fields.ChoiceField(choices=[str(interval) for interval in Interval], required=False)


class UsageView(ProjectAPIView):
    @operation(
        "usageMetrics",
        "Figures per minute, hour or day",
        query=[PAGE, RangeParameters, UsageParameters],
        page=shapes.IntervalFigures,
        page_fields={**RANGE, "interval": Interval},
    )
    def get(self, request: Request) -> Response:
        """Every minute, hour or UTC day that the range touches, the latest first."""
        page, wanted = parse_page(request), parse_range(request)
        given = UsageParameters(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        interval = Interval(given.validated_data.get("interval") or _interval(wanted))
        count, rows = list_usage(
            self.project_id, wanted.start, wanted.end, interval, limit=page.limit, offset=page.offset
        )
        return _envelope(request, page, wanted, count, [metrics.usage(row) for row in rows], interval=str(interval))


class ErrorsView(ProjectAPIView):
    @operation(
        "errorMetrics",
        "What failed, and how often",
        query=[PAGE, RangeParameters],
        page=shapes.ErrorKind,
        page_fields={**RANGE, "total_errors": int},
    )
    def get(self, request: Request) -> Response:
        page, wanted = parse_page(request), parse_range(request)
        rows = list_failures(self.project_id, wanted.start, wanted.end)
        results = metrics.failures(rows)
        shown = results[page.offset : page.offset + page.limit]
        total = sum(row.requests for row in rows)
        return _envelope(request, page, wanted, len(results), shown, total_errors=total)


class ProviderLatencyView(ProjectAPIView):
    @operation("providerLatency", "Live latency of providers", answer=shapes.ProviderLatencies)
    def get(self, request: Request) -> Response:
        """The last five minutes of every usable provider of the project, as the gateway's own choices see them."""
        providers = [metrics.provider_latency(row) for row in project_health(self.project_id)]
        return Response({"window_seconds": WINDOW_SECONDS, "generated_at": datetime.now(UTC), "providers": providers})


def _interval(wanted: TimeRange) -> Interval:
    length = wanted.end - wanted.start
    if length <= _BY_MINUTES:
        return Interval.MINUTE
    return Interval.HOUR if length <= _BY_HOURS else Interval.DAY


def _envelope(
    request: Request, page: Page, wanted: TimeRange, count: int, results: Sequence[dict[str, Any]], **more: Any
) -> Response:
    """The usual list, which also says which range it speaks of."""
    body = page_response(request, page, count, results).data
    return Response({**body, "start_date": wanted.start, "end_date": wanted.end, **more})
