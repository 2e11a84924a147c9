"""The endpoints of the findings of guardrails."""

from __future__ import annotations

from rest_framework import serializers as fields
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE, RangeParameters
from analytics.parameters.ranges import parse_range
from analytics.presenters import guardrails
from analytics.queries.usage import Interval
from analytics.wire import guardrails as wire
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import listing_response, parse_page
from core.wire.parameters import Parameters

_MAX_VERDICTS = 200
_NAME_CHARACTERS = 64


class IntervalParameters(Parameters):
    interval = fields.ChoiceField(required=False, choices=[str(Interval.HOUR), str(Interval.DAY)])


class VerdictParameters(Parameters):
    guardrail = fields.CharField(required=False, allow_blank=True, max_length=_NAME_CHARACTERS)
    action = fields.CharField(required=False, allow_blank=True, max_length=_NAME_CHARACTERS)
    limit = fields.IntegerField(required=False, default=20, min_value=1, max_value=_MAX_VERDICTS)


class GuardrailMetricsViewSet(ProjectViewSet):
    @operation(
        "guardrailMetrics",
        "What each guardrail found",
        query=[PAGE, RangeParameters],
        page=wire.GuardrailFigures,
        page_fields=RANGE,
    )
    def list(self, request: Request) -> Response:
        """The requests in which each guardrail found something, by action; ordered by findings, then by name."""
        page, time_range = parse_page(request), parse_range(request)
        return listing_response(request, page, guardrails.guardrails(self.project_id, time_range, page))

    @operation(
        "guardrailUsage",
        "What guardrails found over time",
        query=[PAGE, RangeParameters, IntervalParameters],
        page=wire.GuardrailInterval,
        page_fields={**RANGE, "interval": str},
    )
    @action(detail=False)
    def usage(self, request: Request) -> Response:
        """The findings per hour or UTC day, the latest first; intervals without findings are left out."""
        page, time_range = parse_page(request), parse_range(request)
        given = self.valid_query(IntervalParameters)
        chosen = given.validated_data.get("interval")
        found = guardrails.guardrail_usage(self.project_id, time_range, page, Interval(chosen) if chosen else None)
        return listing_response(request, page, found)


class GuardrailFindingViewSet(ProjectViewSet):
    @operation(
        "listGuardrailRequests",
        "The newest requests that guardrails found something in",
        query=[RangeParameters, VerdictParameters],
        answer=wire.GuardrailRequests,
    )
    @action(detail=False)
    def requests(self, request: Request) -> Response:
        """The newest verdicts, one for each finding. `detail` is null for a reader without content."""
        time_range = parse_range(request)
        given = self.valid_query(VerdictParameters)
        values = given.validated_data
        results = guardrails.verdicts(
            self.project_id,
            time_range,
            guardrail=values.get("guardrail", ""),
            action=values.get("action", ""),
            limit=values["limit"],
            content=self.sees_content,
        )
        return Response({"start_date": time_range.start, "end_date": time_range.end, "results": results})
