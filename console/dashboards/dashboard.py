from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.http.response import HttpResponseBase

from analytics.dashboards import services
from analytics.errors import ChartNotFoundError
from analytics.models import Chart, Dashboard
from console.dashboards.alerting import alert_address
from console.dashboards.drawing import draw
from console.dashboards.list import DashboardForm, reader_of, seen_by
from console.dashboards.words import filter_words
from core.audit.actors import actor_names
from core.errors import ValidationError
from core.ui.edit import EditPage
from core.ui.pages import Visit
from core.ui.panels import Panel

_REFRESH_SECONDS = 60


class DashboardPage(EditPage[Dashboard, DashboardForm]):
    route = "dashboards/<uuid:dashboard_id>/"
    name = "dashboard"
    title = "Dashboard"
    parent = "dashboards"
    model = Dashboard
    saves = ()

    def record(self, visit: Visit, **route: Any) -> Dashboard:
        return services.get_dashboard(reader_of(visit), route["dashboard_id"])

    def form(self, visit: Visit, record: Dashboard, data: Any = None) -> DashboardForm:
        return DashboardForm(data, initial={"name": record.name, "is_shared": record.is_shared})

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [
            Panel(
                panel_name(chart),
                chart.title,
                "dashboards/chart.html",
                partial(draw, visit, chart),
                refresh_seconds=_REFRESH_SECONDS,
            )
            for chart in self.record(visit, **route).charts.all()
        ]

    def shown(self, visit: Visit, record: Dashboard, form: DashboardForm) -> Mapping[str, Any]:
        charts = list(record.charts.all())
        return {
            "title": record.name,
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
            "may_change": services.may_change(reader_of(visit), record),
            "made_by": "you" if record.owner == visit.actor else actor_names([record.owner])[record.owner],
            "seen_by": seen_by(record),
            "address": visit.request.build_absolute_uri(visit.request.path),
            "add_address": visit.link("chart_form", dashboard=record.pk) if len(charts) < services.MAX_CHARTS else "",
            "maximum": services.MAX_CHARTS,
        }

    def do_save(self, visit: Visit, record: Dashboard) -> HttpResponseBase:
        form = self.form(visit, record, visit.request.POST)
        if not form.is_valid():
            found = (f"{name}: {' '.join(map(str, texts))}" for name, texts in form.errors.items())
            raise ValidationError(" ".join(found))
        saved = services.change_dashboard(reader_of(visit), record.pk, form.cleaned_data)
        return visit.done(f"{saved.name} is saved: seen by {seen_by(saved)}.", self.address(visit, record))

    def do_delete(self, visit: Visit, record: Dashboard) -> HttpResponseBase:
        services.remove_dashboard(reader_of(visit), record.pk)
        return visit.done(f"{record.name} is deleted.", visit.link("dashboards"))

    def do_remove(self, visit: Visit, record: Dashboard) -> HttpResponseBase:
        chart = _chart(visit, record)
        services.remove_chart(reader_of(visit), record.pk, chart.pk)
        return visit.done(f"{chart.title} is removed.", self.address(visit, record))

    def do_earlier(self, visit: Visit, record: Dashboard) -> HttpResponseBase:
        place = max(_chart(visit, record).position - 1, 0)
        return self._change(visit, record, {"position": place}, "stands one place earlier")

    def do_later(self, visit: Visit, record: Dashboard) -> HttpResponseBase:
        place = _chart(visit, record).position + 1
        return self._change(visit, record, {"position": place}, "stands one place later")

    def do_wide(self, visit: Visit, record: Dashboard) -> HttpResponseBase:
        return self._change(visit, record, {"is_wide": True}, "takes the whole width")

    def do_narrow(self, visit: Visit, record: Dashboard) -> HttpResponseBase:
        return self._change(visit, record, {"is_wide": False}, "takes half the width")

    def _change(self, visit: Visit, record: Dashboard, values: Mapping[str, Any], said: str) -> HttpResponseBase:
        chart = _chart(visit, record)
        services.change_chart(reader_of(visit), record.pk, chart.pk, values)
        return visit.done(f"{chart.title} {said}.", self.address(visit, record))


def panel_name(chart: Chart) -> str:
    return f"chart-{chart.pk}"


def _chart(visit: Visit, row: Dashboard) -> Chart:
    given = visit.request.POST.get("chart", "")
    found = next((chart for chart in row.charts.all() if str(chart.pk) == given), None)
    if found is None:
        raise ChartNotFoundError
    return found
