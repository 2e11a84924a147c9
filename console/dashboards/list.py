"""The page of dashboards: one's own and those that others share, and the form for a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.dashboards.services import MAX_CHARTS, MAX_DASHBOARDS, Reader, add_dashboard, list_dashboards
from analytics.models import Dashboard
from analytics.models.dashboards import DASHBOARD_NAME_CHARACTERS
from core.audit.actors import actor_names
from core.errors import ApplicationError
from core.roles import Right
from core.ui.formats import moment, number
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table


class DashboardForm(forms.Form):
    name = forms.CharField(max_length=DASHBOARD_NAME_CHARACTERS, label="Name")
    is_shared = forms.BooleanField(required=False, label="Everybody in the project sees it")


@register_page
class DashboardsPage(Page):
    route = "dashboards/"
    name = "dashboards"
    title = "Dashboards"
    template = "dashboards/list.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit, DashboardForm())

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        form = DashboardForm(visit.request.POST)
        if form.is_valid():
            try:
                row = add_dashboard(reader_of(visit), **form.cleaned_data)
            except ApplicationError as error:
                form.add_error("name", error.message.removeprefix("name: "))
            else:
                messages.success(visit.request, f"{row.name} is made; it has no chart yet.")
                return HttpResponseRedirect(visit.link("dashboard", row.pk))
        return self.render(visit, **_shown(visit, form))


def reader_of(visit: Visit) -> Reader:
    return Reader(visit.project.pk, visit.actor, visit.may(Right.EDIT))


def _shown(visit: Visit, form: DashboardForm) -> dict[str, Any]:
    rows = list(list_dashboards(reader_of(visit)))
    return {
        "table": _table(visit, rows),
        "form": form,
        "max_charts": MAX_CHARTS,
        "has_room": sum(row.owner == visit.actor for row in rows) < MAX_DASHBOARDS,
        "maximum": MAX_DASHBOARDS,
    }


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
