from __future__ import annotations

from datetime import datetime
from typing import Any

from core.http.addresses import public_url
from core.ui.navigation import address_if_there
from gateway.alerts.messages import one_line, utc
from gateway.alerts.recipients import deliveries_by
from gateway.figure_alerts.look import Look
from gateway.figure_alerts.words import CHANGES, condition_text, figure_text, value_text
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import AlertEvent, FigureAlert

_Kind = AlertEvent.Kind
# Entries of an alert that are kept, the latest ones.
MAX_EVENTS = 500
_STATES = {
    _Kind.FIRED: "firing",
    _Kind.REPEATED: "firing",
    _Kind.RESOLVED: "resolved",
    _Kind.NO_DATA: "no_data",
    _Kind.BROKEN: "broken",
    _Kind.TEST: "test",
}
_TITLES = {
    _Kind.FIRED: "Firing",
    _Kind.REPEATED: "Still firing",
    _Kind.RESOLVED: "Resolved",
    _Kind.NO_DATA: "No data",
    _Kind.BROKEN: "Cannot be checked",
    _Kind.TEST: "Test",
}


def add_event(
    alert: FigureAlert, kind: AlertEvent.Kind, look: Look, at: datetime, *, is_sent: bool, is_silenced: bool = False
) -> AlertEvent:
    event = AlertEvent(project_id=alert.project_id, alert=alert, kind=kind, created_at=at, is_silenced=is_silenced)
    event.value, event.value_before = look.value, look.value_before
    project = one_line(alert.project.name)
    sentence = _sentence(alert, kind, look)
    page = public_url() + address_if_there("alert", alert.pk, query={"project": str(alert.project_id)})
    event.subject = f"{_TITLES[kind]}: {one_line(alert.name)} ({project})"
    event.text = f"{sentence}\n{page}\n"
    event.content = {
        "type": "figure.alert",
        "id": str(event.pk),
        "state": _STATES[kind],
        "project_id": str(alert.project_id),
        "project_name": alert.project.name,
        **_described(alert),
        "value": look.value,
        "value_before": look.value_before,
        "measured_count": look.count,
        "message": sentence,
        "url": page,
        "at": utc(at),
    }
    event.save(force_insert=True)
    if is_sent:
        AlertDelivery.objects.bulk_create(deliveries_by(event, alert.channels.all()))
    _forget_old(alert)
    return event


def _described(alert: FigureAlert) -> dict[str, Any]:
    return {
        "alert_id": str(alert.pk),
        "alert_name": alert.name,
        "figure": alert.query.get("figure", ""),
        "filters": alert.query.get("filters", {}),
        "condition": alert.condition,
        "threshold": alert.threshold,
        "window_minutes": alert.window_minutes,
    }


def _sentence(alert: FigureAlert, kind: AlertEvent.Kind, look: Look) -> str:
    figure, condition = figure_text(alert.project_id, alert.query), condition_text(alert)
    if kind is _Kind.TEST:
        return f"This is a test of the alert on {figure}, which fires {condition}. Nothing is wrong."
    if look.problem:
        return f"{figure}: {look.problem}"
    value = value_text(alert.query, look.value)
    if alert.condition in CHANGES and look.value_before is not None:
        value += f", last week {value_text(alert.query, look.value_before)}"
    return f"{figure}: {value}. The alert fires {condition}."


def _forget_old(alert: FigureAlert) -> None:
    old = list(alert.events.values_list("pk", flat=True)[MAX_EVENTS : MAX_EVENTS + 10])
    if old:
        AlertEvent.objects.filter(pk__in=old).delete()
