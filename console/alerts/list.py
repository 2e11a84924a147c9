from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.alerts.cells import history, state_mark, value_cell
from core.roles import Right
from core.ui.formats import moment
from core.ui.pages import Page, Visit
from core.ui.tables import Column, Empty, Table
from gateway.figure_alerts.services import ALERTS
from gateway.figure_alerts.words import condition_text, figure_text
from gateway.tables.figure_alert import AlertEvent, FigureAlert

_EVENTS = 20
_URGENCY = {"broken": 0, "firing": 1}


class AlertsPage(Page):
    route = "alerts/"
    name = "alerts"
    title = "Alerts"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        events = AlertEvent.objects.for_project(visit.project.pk).select_related("alert", "rollout")
        may_edit = visit.may(Right.EDIT)
        return {
            "table": _table(visit, may_edit=may_edit),
            "events": history(
                visit,
                "The latest messages and changes",
                list(events.prefetch_related("deliveries")[:_EVENTS]),
                names_alerts=True,
            ),
            "new_address": visit.link("alert_form") if may_edit else "",
            "channels_address": visit.link_if_there("alert_channels"),
        }


def _table(visit: Visit, *, may_edit: bool) -> Table:
    rows = sorted(ALERTS.rows(visit.project.pk), key=lambda row: (_URGENCY.get(row.state, 2), row.name))
    empty = "No alert yet. One tells you when a figure passes a threshold or differs from last week."
    return Table(
        caption="Alerts of this project, those that fire first",
        columns=[
            Column("name", "Alert", lambda row: row.name),
            Column("state", "State", state_mark),
            Column("figure", "Figure", lambda row: figure_text(row.project_id, row.query)),
            Column("condition", "Fires", condition_text),
            Column("value", "Now", value_cell, is_numeric=True),
            Column("since", "Since", lambda row: moment(row.state_since)),
            Column("channels", "Sent to", _channels),
        ],
        rows=rows,
        key=lambda row: visit.link("alert", row.pk),
        empty=Empty(empty, visit.link("alert_form"), "New alert") if may_edit else Empty(empty),
    )


def _channels(row: FigureAlert) -> str:
    return ", ".join(channel.name for channel in row.channels.all()) or "nobody"
