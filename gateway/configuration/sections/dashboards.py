"""The dashboards that all members of the project see; personal ones are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.dashboards.services import (
    Reader,
    add_chart,
    add_dashboard,
    change_chart,
    list_dashboards,
    remove_chart,
    remove_dashboard,
)
from analytics.models import Chart, Dashboard
from analytics.serializers.dashboards import NewChartSerializer, NewDashboardSerializer
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem, below
from gateway.configuration.sections.base import ACTOR, Differences, EntriesSection, Values, checked, told_apart
from gateway.configuration.sections.subjects import plain_filters, with_ids, with_names

CHART_DEFAULTS: Mapping[str, Any] = {"is_wide": False, "group_by": "", "tag": "", "filters": {}}


class DashboardsSection(EntriesSection):
    name = "dashboards"
    without_default = ("charts",)

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        checked(NewDashboardSerializer, {"name": name}, path)
        charts = given.get("charts")
        if charts is not None and not isinstance(charts, list):
            raise InvalidConfigurationError([Problem((*path, "charts"), "Must be a list.")])
        return {"charts": [_chart(one, (*path, "charts", place)) for place, one in enumerate(charts or [])]}

    def stored(self) -> Mapping[str, Values]:
        return {
            name: {"charts": [self._values(chart) for chart in row.charts.all()]} for name, row in self._rows().items()
        }

    def create(self, name: str, values: Values) -> None:
        row = add_dashboard(self._reader, name=name, is_shared=True)
        for place, chart in enumerate(values["charts"]):
            self._add(row, place, chart)

    def change(self, name: str, values: Values, differences: Differences) -> None:
        row = self._rows()[name]
        charts, there = values["charts"], list(row.charts.all())
        for old in there[len(charts) :]:
            remove_chart(self._reader, row.pk, old.pk)
        for place, chart in enumerate(charts):
            if place >= len(there):
                self._add(row, place, chart)
                continue
            with below(f"charts.{place}"):
                change_chart(self._reader, row.pk, there[place].pk, self._columns(chart))

    def delete(self, name: str) -> None:
        remove_dashboard(self._reader, self._rows()[name].pk)

    def exported(self, name: str, values: Values) -> Values:
        return {
            "charts": [
                {field: value for field, value in chart.items() if CHART_DEFAULTS.get(field, ...) != value}
                for chart in values["charts"]
            ]
        }

    @property
    def _reader(self) -> Reader:
        return Reader(self.project_id, ACTOR, is_editor=True)

    def _rows(self) -> dict[str, Dashboard]:
        rows = list_dashboards(self._reader).filter(is_shared=True).order_by("name", "created_at", "pk")
        return told_apart(rows, lambda row: row.owner)

    def _values(self, chart: Chart) -> Values:
        return {
            "title": chart.title,
            "kind": str(chart.kind),
            "is_wide": chart.is_wide,
            "figures": list(chart.figures),
            "group_by": chart.group_by,
            "tag": chart.tag,
            "filters": with_names(self.project_id, chart.filters),
        }

    def _add(self, row: Dashboard, place: int, chart: Values) -> None:
        with below(f"charts.{place}"):
            add_chart(self._reader, row.pk, self._columns(chart))

    def _columns(self, chart: Values) -> Values:
        return {**chart, "filters": with_ids(self.project_id, chart["filters"])}


def _chart(given: Any, path: Path) -> Values:
    if not isinstance(given, Mapping):
        raise InvalidConfigurationError([Problem(path, "Must be an object.")])
    if "project_id" in given:
        raise InvalidConfigurationError([Problem((*path, "project_id"), "There is no such field.")])
    filters = given.get("filters")
    texts = plain_filters(filters) if isinstance(filters, Mapping) else filters
    data = checked(NewChartSerializer, {**given, **({} if texts is None else {"filters": texts})}, path)
    return {"title": data["title"], "kind": data["kind"], "figures": data["figures"], **CHART_DEFAULTS, **data}
