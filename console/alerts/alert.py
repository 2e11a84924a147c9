from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone

from analytics.figures.query import FigureQuery, series_of
from analytics.figures.registry import FIGURES, FigureUnit
from analytics.parameters.ranges import TimeRange
from console.alerts.cells import history, state_mark, value_cell
from console.alerts.form import AlertForm
from core.errors import ValidationError
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.plots import Plot, Series, Threshold, Unit
from gateway.figure_alerts.services import ALERTS, list_events, send_test, silence_alert
from gateway.figure_alerts.words import CHANGES, condition_text, figure_text
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import FigureAlert

_EVENTS = 50
_SILENCES = ((1, "1 hour"), (8, "8 hours"), (24, "1 day"), (7 * 24, "7 days"))
_UNITS: Mapping[FigureUnit, Unit] = {
    FigureUnit.USD: Unit.MONEY,
    FigureUnit.MILLISECONDS: Unit.MILLISECONDS,
    FigureUnit.SHARE: Unit.SHARE,
    FigureUnit.TOKENS: Unit.TOKENS,
}


class AlertPage(EditPage[FigureAlert, AlertForm]):
    route = "alerts/<uuid:alert_id>/"
    name = "alert"
    title = "Alert"
    parent = "alerts"
    model = FigureAlert
    right = Right.EDIT

    def record(self, visit: Visit, **route: Any) -> FigureAlert:
        return ALERTS.get(visit.project.pk, route["alert_id"])

    def form(self, visit: Visit, record: FigureAlert, data: Any = None) -> AlertForm:
        return AlertForm(visit, record, data)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        row = self.record(visit, **route)
        return [Panel("figure", "The figure", "alerts/figure.html", partial(_figure, visit, row), is_wide=True)]

    def save(self, visit: Visit, record: FigureAlert, form: AlertForm) -> HttpResponseBase:
        saved = ALERTS.change(visit.project.pk, record.pk, form.values, actor=visit.actor)
        said = f"{saved.name}: saved, and looked at anew within half a minute."
        return visit.done(said, self.address(visit, record))

    def shown(self, visit: Visit, record: FigureAlert, form: AlertForm) -> Mapping[str, Any]:
        events = list(list_events(record).select_related("alert", "rollout")[:_EVENTS])
        return {
            "title": record.name,
            "mark": state_mark(record),
            "value": value_cell(record),
            "figure": figure_text(record.project_id, record.query),
            "condition": condition_text(record),
            "history": history(visit, f"The history of {record.name}", events, names_alerts=False),
            "silences": _SILENCES,
            "channels_address": visit.link_if_there("alert_channels"),
        }

    def do_test(self, visit: Visit, record: FigureAlert) -> HttpResponseBase:
        event = send_test(visit.project.pk, record.pk, actor=visit.actor)
        for one in event.deliveries.all():
            if one.state == AlertDelivery.State.DELIVERED:
                messages.success(visit.request, f"{one.way} took the test message.")
            else:
                messages.error(visit.request, f"{one.way} did not take the test message: {one.last_error}.")
        return HttpResponseRedirect(self.address(visit, record))

    def do_silence(self, visit: Visit, record: FigureAlert) -> HttpResponseBase:
        hours = visit.request.POST.get("hours", "")
        if hours not in {str(offered) for offered, _ in _SILENCES}:
            raise ValidationError("Choose how long the alert is silent.")
        until = datetime.now(UTC) + timedelta(hours=int(hours))
        silence_alert(visit.project.pk, record.pk, until, actor=visit.actor)
        shown = timezone.localtime(until).strftime("%d %b %H:%M")
        return visit.done(f"{record.name} sends nothing until {shown}.", self.address(visit, record))

    def do_unsilence(self, visit: Visit, record: FigureAlert) -> HttpResponseBase:
        silence_alert(visit.project.pk, record.pk, None, actor=visit.actor)
        return visit.done(f"{record.name} is not silent any more.", self.address(visit, record))

    def do_delete(self, visit: Visit, record: FigureAlert) -> HttpResponseBase:
        ALERTS.remove(visit.project.pk, record.pk, actor=visit.actor)
        return visit.done(f"{record.name} was deleted with its history.", visit.link("alerts"))


def _figure(visit: Visit, row: FigureAlert) -> Mapping[str, Any]:
    try:
        query = FigureQuery.from_json(row.query)
        found = series_of(visit.project.pk, query, TimeRange(visit.period.start, visit.period.end))
    except ValidationError as error:
        return {"sentence": f"The figure cannot be measured any more: {error.message}"}
    figure = FIGURES[query.figure]
    # A sum over an hour says nothing about the threshold for a day.
    has_line = row.condition not in CHANGES and not figure.is_sum
    plot = Plot(
        title=figure.label,
        times=found.starts,
        series=[Series(figure.label, found.series[0].values)],
        unit=_UNITS.get(figure.unit, Unit.COUNT),
        thresholds=[Threshold("threshold", row.threshold, kind="bad")] if has_line else [],
        caption=False,
    )
    return {"plot": plot}
