"""The page of one alert: its figure against the threshold, what happened, and forms that change, silence and try it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone

from analytics.figures.query import FigureQuery, series_of
from analytics.figures.registry import FIGURES, FigureUnit
from analytics.parameters.ranges import TimeRange
from console.alerts.cells import history, state_mark, value_cell
from console.alerts.form import AlertForm
from core.errors import ApplicationError, NotFoundError, ValidationError
from core.roles import Right
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.plots import Plot, Series, Threshold, Unit
from core.ui.registry import register_page
from gateway.figure_alerts.services import delete_alert, get_alert, list_events, send_test, silence_alert
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


@register_page
class AlertPage(Page):
    route = "alerts/<uuid:alert_id>/"
    name = "alert"
    title = "Alert"
    template = "alerts/alert.html"
    parent = "alerts"
    methods = ("GET", "HEAD", "POST")

    def project_id(self, **route: Any) -> UUID | None:
        found = FigureAlert.objects.filter(pk=route["alert_id"]).values_list("project_id", flat=True).first()
        if found is None:
            raise Http404("There is no such alert.")
        return found

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = _found(visit, route["alert_id"])
        return _shown(visit, row, AlertForm(visit, row))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        row = _found(visit, route["alert_id"])
        return [Panel("figure", "The figure", "alerts/figure.html", partial(_figure, visit, row), is_wide=True)]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        row, action = _found(visit, route["alert_id"]), visit.request.POST.get("action", "")
        if action == "save":
            return self._save(visit, row)
        try:
            _ACTIONS.get(action, _unknown)(visit, row)
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        if action == "delete":
            return HttpResponseRedirect(visit.link("alerts"))
        return HttpResponseRedirect(visit.link(self.name, row.pk))

    def _save(self, visit: Visit, row: FigureAlert) -> HttpResponseBase:
        form = AlertForm(visit, row, visit.request.POST)
        if form.is_valid() and form.save(visit, row) is not None:
            messages.success(visit.request, f"{form.values['name']}: saved, and looked at anew within half a minute.")
            return HttpResponseRedirect(visit.link(self.name, row.pk))
        return self.render(visit, self.panels(visit, alert_id=row.pk), **_shown(visit, row, form))


def _found(visit: Visit, alert_id: UUID) -> FigureAlert:
    try:
        return get_alert(visit.project.pk, alert_id)
    except NotFoundError as error:
        raise Http404(error.message) from None


def _shown(visit: Visit, row: FigureAlert, form: AlertForm) -> dict[str, Any]:
    events = list(list_events(row).select_related("alert", "rollout")[:_EVENTS])
    return {
        "title": row.name,
        "alert": row,
        "mark": state_mark(row),
        "value": value_cell(row),
        "figure": figure_text(row.project_id, row.query),
        "condition": condition_text(row),
        "history": history(visit, f"The history of {row.name}", events, names_alerts=False),
        "form": form if visit.may(Right.EDIT) else None,
        "silences": _SILENCES,
        "channels_address": visit.link_if_there("alert_channels"),
        "is_refused": form.is_bound,
    }


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


def _test(visit: Visit, row: FigureAlert) -> None:
    event = send_test(visit.project.pk, row.pk, actor=visit.actor)
    for one in event.deliveries.all():
        if one.state == AlertDelivery.State.DELIVERED:
            messages.success(visit.request, f"{one.way} took the test message.")
        else:
            messages.error(visit.request, f"{one.way} did not take the test message: {one.last_error}.")


def _silence(visit: Visit, row: FigureAlert) -> None:
    hours = visit.request.POST.get("hours", "")
    if hours not in {str(offered) for offered, _ in _SILENCES}:
        raise ValidationError("Choose how long the alert is silent.")
    until = datetime.now(UTC) + timedelta(hours=int(hours))
    silence_alert(visit.project.pk, row.pk, until, actor=visit.actor)
    shown = timezone.localtime(until).strftime("%d %b %H:%M")
    messages.success(visit.request, f"{row.name} sends nothing until {shown}.")


def _end_silence(visit: Visit, row: FigureAlert) -> None:
    silence_alert(visit.project.pk, row.pk, None, actor=visit.actor)
    messages.success(visit.request, f"{row.name} is not silent any more.")


def _delete(visit: Visit, row: FigureAlert) -> None:
    delete_alert(visit.project.pk, row.pk, actor=visit.actor)
    messages.success(visit.request, f"{row.name} was deleted with its history.")


def _unknown(visit: Visit, row: FigureAlert) -> None:
    raise ValidationError("There is no such action.")


_ACTIONS: Mapping[str, Callable[[Visit, FigureAlert], None]] = {
    "test": _test,
    "silence": _silence,
    "unsilence": _end_silence,
    "delete": _delete,
}
