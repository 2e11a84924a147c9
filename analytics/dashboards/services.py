"""The services of dashboards and their charts. Only its owner can see a dashboard that is not shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from analytics.dashboards.questions import ChartQuestion
from analytics.errors import (
    ChartNotFoundError,
    DashboardExistsError,
    DashboardNotFoundError,
    DashboardNotOwnedError,
    TooManyChartsError,
    TooManyDashboardsError,
)
from analytics.models import Chart, ChartKind, Dashboard
from core.resources.rows import get_or_raise, lock_project, require_room

MAX_DASHBOARDS = 50
# Each chart is a query, and all charts of a page run together.
MAX_CHARTS = 12
_QUESTION = ("figures", "group_by", "tag", "filters")


@dataclass(frozen=True)
class Reader:
    project_id: UUID
    actor: str
    is_editor: bool


def list_dashboards(reader: Reader) -> QuerySet[Dashboard]:
    """Returns the reader's own dashboards and the shared ones, by name."""
    seen = Q(owner=reader.actor) | Q(is_shared=True)
    return Dashboard.objects.for_project(reader.project_id).filter(seen).prefetch_related("charts")


def get_dashboard(reader: Reader, dashboard_id: UUID) -> Dashboard:
    """Raises DashboardNotFoundError, also for another's dashboard that is not shared."""
    return get_or_raise(list_dashboards(reader), DashboardNotFoundError, pk=dashboard_id)


def may_change(reader: Reader, row: Dashboard) -> bool:
    return row.owner == reader.actor or (row.is_shared and reader.is_editor)


def add_dashboard(reader: Reader, *, name: str, is_shared: bool = False) -> Dashboard:
    with transaction.atomic():
        own = Dashboard.objects.for_project(reader.project_id).filter(owner=reader.actor)
        require_room(reader.project_id, own, MAX_DASHBOARDS, TooManyDashboardsError(MAX_DASHBOARDS))
        return _save(Dashboard(project_id=reader.project_id, owner=reader.actor, name=name, is_shared=is_shared))


def change_dashboard(reader: Reader, dashboard_id: UUID, values: Mapping[str, Any]) -> Dashboard:
    """`values` may have `name` and `is_shared`.

    Raises DashboardNotFoundError, DashboardNotOwnedError and DashboardExistsError.
    """
    with transaction.atomic():
        lock_project(reader.project_id)
        row = _changeable(reader, dashboard_id)
        row.name = values.get("name", row.name)
        row.is_shared = values.get("is_shared", row.is_shared)
        return _save(row)


def remove_dashboard(reader: Reader, dashboard_id: UUID) -> None:
    _changeable(reader, dashboard_id).delete()


def get_chart(row: Dashboard, chart_id: UUID) -> Chart:
    return get_or_raise(row.charts, ChartNotFoundError, pk=chart_id)


def add_chart(reader: Reader, dashboard_id: UUID, values: Mapping[str, Any]) -> Chart:
    """Adds the chart as the last one.

    Raises DashboardNotFoundError, DashboardNotOwnedError, TooManyChartsError, and ValidationError for figures that this
    kind of chart cannot show.
    """
    with transaction.atomic():
        row = _locked(reader, dashboard_id)
        count = row.charts.count()
        if count >= MAX_CHARTS:
            raise TooManyChartsError(MAX_CHARTS)
        chart = _filled(Chart(dashboard=row, position=count), values)
        chart.save()
    return chart


def change_chart(reader: Reader, dashboard_id: UUID, chart_id: UUID, values: Mapping[str, Any]) -> Chart:
    """`position` moves the chart to that place, from 0 on. Raises as `add_chart` does, and ChartNotFoundError."""
    with transaction.atomic():
        row = _locked(reader, dashboard_id)
        chart = _filled(get_chart(row, chart_id), values)
        chart.save()
        if "position" in values:
            others = [one for one in row.charts.all() if one.pk != chart.pk]
            _number([*others[: values["position"]], chart, *others[values["position"] :]])
    return chart


def remove_chart(reader: Reader, dashboard_id: UUID, chart_id: UUID) -> None:
    with transaction.atomic():
        row = _locked(reader, dashboard_id)
        get_chart(row, chart_id).delete()
        _number(list(row.charts.all()))


def _changeable(reader: Reader, dashboard_id: UUID) -> Dashboard:
    row = get_dashboard(reader, dashboard_id)
    if not may_change(reader, row):
        raise DashboardNotOwnedError
    return row


def _locked(reader: Reader, dashboard_id: UUID) -> Dashboard:
    row = _changeable(reader, dashboard_id)
    return Dashboard.objects.select_for_update().get(pk=row.pk)


def _save(row: Dashboard) -> Dashboard:
    others = Dashboard.objects.filter(project_id=row.project_id, owner=row.owner, name=row.name).exclude(pk=row.pk)
    if others.exists():
        raise DashboardExistsError(row.name)
    row.save()
    return row


def _filled(chart: Chart, values: Mapping[str, Any]) -> Chart:
    for name in ("title", "kind", "is_wide", *_QUESTION):
        if name in values:
            setattr(chart, name, values[name])
    # A chart whose figure is not there any more can still be moved and renamed.
    if any(name in values for name in ("kind", *_QUESTION)):
        ChartQuestion.of(chart).check(ChartKind(chart.kind))
    return chart


def _number(charts: Sequence[Chart]) -> None:
    for position, chart in enumerate(charts):
        chart.position = position
    Chart.objects.bulk_update(charts, ["position"])
