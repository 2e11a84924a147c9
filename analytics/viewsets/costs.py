"""The endpoints of cost by a dimension."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework import serializers as fields
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.exports.spreadsheet import MAX_EXPORTED, cost_table, csv_response
from analytics.parameters.common import OperationParameters, parse_operation
from analytics.parameters.ranges import parse_range
from analytics.presenters import metrics, spend
from analytics.queries.dimensions import Dimension
from analytics.queries.groups import ModelCost
from analytics.queries.usage import DayCost, Interval
from analytics.viewsets.ranged import Figures, FiguresViewSet
from analytics.wire import spend as wire
from core.openapi import operation
from core.wire.pagination import Page
from core.wire.parameters import Parameters, RangeParameters


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


class CostViewSet(FiguresViewSet):
    figures = {
        "list": Figures(
            "cost",
            "Cost by model, user, key and other dimensions",
            spend.cost_by,
            wire.DimensionFigures,
            [OperationParameters, DimensionParameters],
            {
                "group_by": Dimension,
                "request_count": int,
                "total_tokens": int,
                "total_cost_usd": float,
                "range_before": wire.PreviousTotals,
            },
            "The entries are ordered by falling cost. `range_before`, and `previous` of an entry, have the figures of"
            " the range just before, which is as long as the part of the range that is over.",
        ),
        "by-model": Figures(
            "modelCost",
            "Cost per model",
            metrics.model_costs,
            ModelCost,
            [OperationParameters],
            {"total_cost_usd": float},
        ),
        "daily": Figures(
            "dailyCost",
            "Cost per day",
            metrics.daily_costs,
            DayCost,
            [OperationParameters],
            description="The list has every UTC day that the range touches, the latest first.",
        ),
        "gaps": Figures(
            "priceGaps",
            "Models used without a known price",
            spend.price_gaps,
            wire.PriceGap,
            [OperationParameters],
            description="The models are those with requests whose cost is unknown, the most such requests first.",
        ),
    }

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
        return Response(spend.cost_intervals(self.project_id, time_range, parse_operation(request), **given))

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
        page = Page(MAX_EXPORTED, 0)
        found = spend.cost_by(self.project_id, time_range, page, parse_operation(request), **given)
        return csv_response(f"cost-by-{given['group_by']}.csv", cost_table(found.results))
