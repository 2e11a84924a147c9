from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http.response import HttpResponseBase

from analytics.dashboards.services import MAX_CHARTS, MAX_DASHBOARDS, Reader, add_dashboard, list_dashboards
from analytics.models import Dashboard
from analytics.models.dashboards import DASHBOARD_NAME_CHARACTERS
from core.audit.actors import actor_names
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import moment, number
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table


class DashboardForm(forms.Form):
    name = forms.CharField(max_length=DASHBOARD_NAME_CHARACTERS, label="Name")
    is_shared = forms.BooleanField(required=False, label="Everybody in the project sees it")


class DashboardsPage(EditPage[None, DashboardForm]):
    route = "dashboards/"
    name = "dashboards"
    title = "Dashboards"
    fields_of_codes = {"": "name"}

    def form(self, visit: Visit, record: None, data: Any = None) -> DashboardForm:
        return DashboardForm(data)

    def save(self, visit: Visit, record: None, form: DashboardForm) -> HttpResponseBase:
        row = add_dashboard(reader_of(visit), **form.cleaned_data)
        return visit.done(f"{row.name} is made; it has no chart yet.", visit.link("dashboard", row.pk))

    def shown(self, visit: Visit, record: None, form: DashboardForm) -> Mapping[str, Any]:
        rows = list(list_dashboards(reader_of(visit)))
        return {
            "table": _table(visit, rows),
            "max_charts": MAX_CHARTS,
            "has_room": sum(row.owner == visit.actor for row in rows) < MAX_DASHBOARDS,
            "maximum": MAX_DASHBOARDS,
        }


def reader_of(visit: Visit) -> Reader:
    return Reader(visit.project.pk, visit.actor, visit.may(Right.EDIT))


def _table(visit: Visit, rows: list[Dashboard]) -> Table:
    owners = actor_names(row.owner for row in rows)
    return Table(
        caption="Your dashboards and those that are shared with you",
        columns=[
            Column("name", "Dashboard", lambda row: row.name),
            Column("charts", "Charts", lambda row: number(len(row.charts.all())), is_numeric=True),
            Column("owner", "Made by", lambda row: "you" if row.owner == visit.actor else owners[row.owner]),
            Column("shared", "Seen by", lambda row: seen_by(row)),
            Column("changed", "Changed", lambda row: moment(row.updated_at)),
        ],
        rows=rows,
        key=lambda row: visit.link("dashboard", row.pk),
        empty=Empty(
            "No dashboard yet. Make one below, or press “Keep as chart” beside a plot or a table of another page.",
            visit.link_if_there("usage"),
            "Usage and cost has several",
        ),
    )


def seen_by(row: Dashboard) -> str:
    return "everybody in the project" if row.is_shared else "whoever made it"
