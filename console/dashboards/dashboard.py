"""The page of one dashboard: its charts for the range of the page, and the forms that arrange and share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.dashboards import services
from analytics.errors import ChartNotFoundError
from analytics.models import Chart, Dashboard
from console.dashboards.alerting import alert_address
from console.dashboards.drawing import draw
from console.dashboards.list import DashboardForm, reader_of, seen_by
from console.dashboards.words import filter_words
from core.audit.actors import actor_names
from core.errors import ApplicationError, NotFoundError, ValidationError
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page

_REFRESH_SECONDS = 60


@register_page
class DashboardPage(Page):
    route = "dashboards/<uuid:dashboard_id>/"
    name = "dashboard"
    title = "Dashboard"
    template = "dashboards/dashboard.html"
    parent = "dashboards"
    methods = ("GET", "HEAD", "POST")

    def project_id(self, **route: Any) -> UUID | None:
        found = Dashboard.objects.filter(pk=route["dashboard_id"]).values_list("project_id", flat=True).first()
        if found is None:
            raise Http404("There is no such dashboard.")
        return found

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit, _found(visit, route["dashboard_id"]))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        row = _found(visit, route["dashboard_id"])
        return [
            Panel(
                panel_name(chart),
                chart.title,
                "dashboards/chart.html",
                partial(draw, visit, chart),
                refresh_seconds=_REFRESH_SECONDS,
            )
            for chart in row.charts.all()
        ]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        row, given = _found(visit, route["dashboard_id"]), visit.request.POST
        try:
            said = _ACTIONS.get(given.get("action", ""), _unknown)(visit, row)
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        else:
            messages.success(visit.request, said)
        if given.get("action") == "delete" and not Dashboard.objects.filter(pk=row.pk).exists():
            return HttpResponseRedirect(visit.link("dashboards"))
        return HttpResponseRedirect(visit.link(self.name, row.pk))


def panel_name(chart: Chart) -> str:
    return f"chart-{chart.pk}"


def _found(visit: Visit, dashboard_id: UUID) -> Dashboard:
    try:
        return services.get_dashboard(reader_of(visit), dashboard_id)
    except NotFoundError as error:
        raise Http404(error.message) from None


def _shown(visit: Visit, row: Dashboard) -> dict[str, Any]:
    may_change = services.may_change(reader_of(visit), row)
    charts = list(row.charts.all())
    return {
        "title": row.name,
        "dashboard": row,
        "charts": [
            {
                "row": chart,
                "panel": panel_name(chart),
                "about": ", ".join(filter_words(visit.project.pk, chart.filters)),
                "alert_address": alert_address(visit, chart.figures[0], title=chart.title, filters=chart.filters),
                "change_address": visit.link("chart_form", chart=chart.pk),
                "is_first": chart is charts[0],
                "is_last": chart is charts[-1],
            }
            for chart in charts
        ],
        "may_change": may_change,
        "form": DashboardForm(initial={"name": row.name, "is_shared": row.is_shared}),
        "made_by": "you" if row.owner == visit.actor else actor_names([row.owner])[row.owner],
        "seen_by": seen_by(row),
        "address": visit.request.build_absolute_uri(visit.request.path),
        "add_address": visit.link("chart_form", dashboard=row.pk) if len(charts) < services.MAX_CHARTS else "",
        "maximum": services.MAX_CHARTS,
    }


def _save(visit: Visit, row: Dashboard) -> str:
    form = DashboardForm(visit.request.POST)
    if not form.is_valid():
        raise ValidationError(" ".join(f"{name}: {' '.join(map(str, found))}" for name, found in form.errors.items()))
    saved = services.change_dashboard(reader_of(visit), row.pk, form.cleaned_data)
    return f"{saved.name} is saved: seen by {seen_by(saved)}."


def _delete(visit: Visit, row: Dashboard) -> str:
    services.remove_dashboard(reader_of(visit), row.pk)
    return f"{row.name} is deleted."


def _chart(visit: Visit, row: Dashboard) -> Chart:
    given = visit.request.POST.get("chart", "")
    found = next((chart for chart in row.charts.all() if str(chart.pk) == given), None)
    if found is None:
        raise ChartNotFoundError
    return found


def _change(visit: Visit, row: Dashboard, change: Callable[[Chart], Mapping[str, Any]], said: str) -> str:
    chart = _chart(visit, row)
    services.change_chart(reader_of(visit), row.pk, chart.pk, change(chart))
    return f"{chart.title} {said}."


def _remove(visit: Visit, row: Dashboard) -> str:
    chart = _chart(visit, row)
    services.remove_chart(reader_of(visit), row.pk, chart.pk)
    return f"{chart.title} is removed."


def _unknown(visit: Visit, row: Dashboard) -> str:
    raise ValidationError("action: There is no such action.")


_ACTIONS: Mapping[str, Callable[[Visit, Dashboard], str]] = {
    "save": _save,
    "delete": _delete,
    "remove": _remove,
    "earlier": partial(
        _change, change=lambda chart: {"position": max(chart.position - 1, 0)}, said="stands one place earlier"
    ),
    "later": partial(_change, change=lambda chart: {"position": chart.position + 1}, said="stands one place later"),
    "wide": partial(_change, change=lambda chart: {"is_wide": True}, said="takes the whole width"),
    "narrow": partial(_change, change=lambda chart: {"is_wide": False}, said="takes half the width"),
}
