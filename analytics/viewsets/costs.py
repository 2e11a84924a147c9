"""The endpoints of cost by a dimension."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework import serializers as fields
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.exports.spreadsheet import MAX_EXPORTED, cost_table, csv_response
from analytics.parameters.common import RANGE, OperationParameters, RangeParameters, parse_operation
from analytics.parameters.ranges import parse_range
from analytics.presenters import metrics, spend
from analytics.queries.dimensions import Dimension
from analytics.queries.usage import Interval
from analytics.wire import spend as wire
from analytics.wire.metrics import DayCost, ModelCost
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import Page, listing_response, parse_page
from core.wire.parameters import Parameters


class DimensionParameters(Parameters):
    group_by = fields.ChoiceField(choices=[str(one) for one in Dimension], required=False, default=Dimension.MODEL)
    tag = fields.CharField(
        required=False, default="", allow_blank=True, max_length=64, help_text="The metadata of `group_by=metadata`."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_metadata = attrs["group_by"] == Dimension.METADATA
        if is_metadata and not attrs["tag"]:
            raise fields.ValidationError({"tag": "group_by=metadata needs the name of the metadata."})
        if attrs["tag"] and not is_metadata:
            raise fields.ValidationError({"tag": "A tag goes with group_by=metadata."})
        return attrs


class CostIntervalParameters(DimensionParameters):
    interval = fields.ChoiceField(choices=[str(one) for one in Interval], required=False)
    top = fields.IntegerField(min_value=1, max_value=spend.MAX_TOP, required=False, default=spend.DEFAULT_TOP)


class CostViewSet(ProjectViewSet):
    @operation(
        "cost",
        "Cost by model, user, key and other dimensions",
        query=[PAGE, RangeParameters, OperationParameters, DimensionParameters],
        page=wire.DimensionFigures,
        page_fields={
            **RANGE,
            "group_by": Dimension,
            "request_count": int,
            "total_tokens": int,
            "total_cost_usd": float,
            "range_before": wire.PreviousTotals,
        },
    )
    def list(self, request: Request) -> Response:
        """The entries are ordered by falling cost. `range_before`, and `previous` of an entry, have the figures of the
        range just before, which is as long as the part of the range that is over."""
        page, time_range = parse_page(request), parse_range(request)
        given = self.valid_query(DimensionParameters).validated_data
        dimension, kind = Dimension(given["group_by"]), parse_operation(request)
        found = spend.cost_by(self.project_id, dimension, time_range, page, kind, tag=given["tag"])
        return listing_response(request, page, found)

    @operation(
        "modelCost",
        "Cost per model",
        query=[PAGE, RangeParameters, OperationParameters],
        page=ModelCost,
        page_fields={**RANGE, "total_cost_usd": float},
    )
    @action(detail=False, url_path="by-model")
    def by_model(self, request: Request) -> Response:
        page, time_range = parse_page(request), parse_range(request)
        return listing_response(
            request, page, metrics.model_costs(self.project_id, time_range, page, parse_operation(request))
        )

    @operation(
        "dailyCost",
        "Cost per day",
        query=[PAGE, RangeParameters, OperationParameters],
        page=DayCost,
        page_fields=RANGE,
    )
    @action(detail=False)
    def daily(self, request: Request) -> Response:
        """The list has every UTC day that the range touches, the latest first."""
        page, time_range = parse_page(request), parse_range(request)
        return listing_response(
            request, page, metrics.daily_costs(self.project_id, time_range, page, parse_operation(request))
        )

    @operation(
        "costIntervals",
        "Cost per minute, hour or day, split by a dimension",
        query=[RangeParameters, OperationParameters, CostIntervalParameters],
        answer=wire.CostIntervals,
    )
    @action(detail=False)
    def intervals(self, request: Request) -> Response:
        """The series are those of the `top` keys by cost, and `other` of all else, in each interval that has begun."""
        time_range, given = parse_range(request), self.valid_query(CostIntervalParameters).validated_data
        found = spend.cost_intervals(
            self.project_id,
            Dimension(given["group_by"]),
            time_range,
            interval=Interval(given["interval"]) if given.get("interval") else None,
            top=given["top"],
            operation=parse_operation(request),
            tag=given["tag"],
        )
        return Response(found)

    @operation(
        "exportCost",
        "Cost by a dimension as CSV",
        query=[RangeParameters, OperationParameters, DimensionParameters],
        answer={"type": "string"},
        media_type="text/csv",
    )
    @action(detail=False)
    def export(self, request: Request) -> HttpResponse:
        """The lines are the first 10,000 entries of `metrics/cost`. A text that a spreadsheet would take for a formula
        begins with an apostrophe."""
        time_range, given = parse_range(request), self.valid_query(DimensionParameters).validated_data
        dimension, page = Dimension(given["group_by"]), Page(MAX_EXPORTED, 0)
        found = spend.cost_by(self.project_id, dimension, time_range, page, parse_operation(request), tag=given["tag"])
        return csv_response(f"cost-by-{dimension}.csv", cost_table(found.results))

    @operation(
        "priceGaps",
        "Models used without a known price",
        query=[PAGE, RangeParameters, OperationParameters],
        page=wire.PriceGap,
        page_fields=RANGE,
    )
    @action(detail=False)
    def gaps(self, request: Request) -> Response:
        """The models are those with requests whose cost is unknown, the most such requests first."""
        page, time_range = parse_page(request), parse_range(request)
        found = spend.price_gaps(self.project_id, time_range, page, parse_operation(request))
        return listing_response(request, page, found)
