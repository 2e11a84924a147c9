"""The JSON of dashboards, their charts, and the figures that charts can show."""

from __future__ import annotations

from typing import Any, TypedDict

from rest_framework import serializers

from analytics.figures.filters import filters_of, groups_of
from analytics.figures.registry import Figure, FigureUnit
from analytics.models import Chart, ChartKind, Dashboard
from analytics.models.dashboards import CHART_TITLE_CHARACTERS, DASHBOARD_NAME_CHARACTERS
from analytics.parameters.values import TextsField
from core.wire.serializers import BodySerializer
from core.wire.shown import shown_as

_MAX_FILTER_CHARACTERS = 1024
_MAX_POSITION = 100


class FilterField(TextsField):
    """A filter's value, or a list of values for one that is given several times."""

    def __init__(self) -> None:
        super().__init__(_MAX_FILTER_CHARACTERS)

    def to_representation(self, value: Any) -> Any:
        return value


class FigureEntry(TypedDict):
    name: str
    label: str
    unit: FigureUnit
    groups: list[str]
    filters: list[str]


def figure_entry(figure: Figure) -> FigureEntry:
    return shown_as(FigureEntry, figure, groups=list(groups_of(figure)), filters=list(filters_of(figure)))


class ChartSerializer(serializers.ModelSerializer[Chart]):
    figures = serializers.ListField(child=serializers.CharField())
    filters = serializers.DictField(child=FilterField())

    class Meta:
        model = Chart
        fields = ["id", "position", "title", "kind", "is_wide", "figures", "group_by", "tag", "filters"]
        read_only_fields = fields


class DashboardSerializer(serializers.ModelSerializer[Dashboard]):
    charts = ChartSerializer(many=True, read_only=True)

    class Meta:
        model = Dashboard
        fields = ["id", "name", "owner", "is_shared", "charts", "created_at", "updated_at"]
        read_only_fields = fields


class DashboardChangeSerializer(BodySerializer):
    """The fields to change; an omitted one stays as it is."""

    written_back = frozenset({"id", "owner", "charts", "created_at", "updated_at"})

    name = serializers.CharField(required=False, max_length=DASHBOARD_NAME_CHARACTERS)
    is_shared = serializers.BooleanField(
        required=False, help_text="Whether every member of the project sees the dashboard."
    )


class NewDashboardSerializer(DashboardChangeSerializer):
    written_back = frozenset()

    name = serializers.CharField(max_length=DASHBOARD_NAME_CHARACTERS)


class ChartChangeSerializer(BodySerializer):
    """The fields to change; an omitted one stays as it is."""

    written_back = frozenset({"id"})

    title = serializers.CharField(required=False, max_length=CHART_TITLE_CHARACTERS)
    kind = serializers.ChoiceField(required=False, choices=ChartKind.choices)
    is_wide = serializers.BooleanField(required=False, help_text="Whether it takes the whole width of the page.")
    figures = serializers.ListField(
        child=serializers.CharField(max_length=100), required=False, help_text="Names of `listFigures`."
    )
    group_by = serializers.CharField(required=False, allow_blank=True, max_length=32)
    tag = serializers.CharField(
        required=False, allow_blank=True, max_length=64, help_text="The metadata of `group_by=metadata`."
    )
    filters = serializers.DictField(
        child=FilterField(),
        required=False,
        help_text="Filters of the request log, or of figures about scores, by name.",
    )
    position = serializers.IntegerField(
        required=False, min_value=0, max_value=_MAX_POSITION, help_text="The place among the charts, from 0 on."
    )

    def validate_filters(self, value: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
        """Leaves out empty values; a single one is a text."""
        several = {name: [given] if isinstance(given, str) else given for name, given in value.items()}
        kept = {name: [one for one in values if one] for name, values in several.items()}
        return {name: values if len(values) > 1 else values[0] for name, values in kept.items() if values}


class NewChartSerializer(ChartChangeSerializer):
    written_back = frozenset()

    title = serializers.CharField(max_length=CHART_TITLE_CHARACTERS)
    kind = serializers.ChoiceField(choices=ChartKind.choices)
    figures = serializers.ListField(child=serializers.CharField(max_length=100), help_text="Names of `listFigures`.")

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        # A new chart stands behind the others.
        fields.pop("position")
        return fields
