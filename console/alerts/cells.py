from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from core.ui.formats import NONE, moment
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from gateway.figure_alerts.shown import shown_state
from gateway.figure_alerts.words import CHANGES, value_text
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import AlertEvent, FigureAlert

_STATES: Mapping[str, tuple[str, str]] = {
    "ok": ("good", "ok"),
    "firing": ("bad", "firing"),
    "no_data": ("neutral", "no data"),
    "silenced": ("warn", "silenced"),
    "broken": ("bad", "broken"),
}
_EVENTS: Mapping[str, tuple[str, str]] = {
    AlertEvent.Kind.FIRED: ("bad", "fired"),
    AlertEvent.Kind.REPEATED: ("bad", "still firing"),
    AlertEvent.Kind.RESOLVED: ("good", "resolved"),
    AlertEvent.Kind.NO_DATA: ("neutral", "no data"),
    AlertEvent.Kind.BROKEN: ("bad", "broken"),
    AlertEvent.Kind.TEST: ("neutral", "test"),
    AlertEvent.Kind.ROLLOUT: ("warn", "rollout at 100 %"),
}
_DELIVERIES = {
    AlertDelivery.State.PENDING: "warn",
    AlertDelivery.State.DELIVERED: "good",
    AlertDelivery.State.FAILED: "bad",
}


def state_mark(row: FigureAlert) -> SafeString:
    if row.checked_at is None and row.state == FigureAlert.State.NO_DATA and not row.is_silenced:
        return status("not looked at yet", "neutral")
    kind, label = _STATES[shown_state(row)]
    return status(label, kind)


def value_cell(row: FigureAlert) -> str:
    if row.value is None:
        return NONE
    shown = value_text(row.query, row.value)
    if row.condition in CHANGES and row.value_before is not None:
        return f"{shown} (last week {value_text(row.query, row.value_before)})"
    return shown


def history(visit: Visit, caption: str, events: Sequence[AlertEvent], *, names_alerts: bool) -> Table:
    about = [Column("about", "About", lambda row: _about(visit, row))] if names_alerts else []
    return Table(
        caption=caption,
        columns=[
            Column("time", "Time", lambda row: moment(row.created_at)),
            Column("what", "What", lambda row: status(_EVENTS[row.kind][1], _EVENTS[row.kind][0])),
            *about,
            Column("message", "Message", lambda row: row.content.get("message", "")),
            Column("sent", "Sent", _sent),
        ],
        rows=events,
        empty=Empty("Nothing happened yet."),
    )


def _about(visit: Visit, row: AlertEvent) -> Any:
    if row.alert is not None:
        return format_html('<a href="{}">{}</a>', visit.link("alert", row.alert.pk), row.alert.name)
    if row.rollout is not None:
        page = visit.link_if_there("rollouts_rollout_change", row.rollout.pk)
        return format_html('<a href="{}">{}</a>', page, row.rollout.name)
    return NONE


def _sent(row: AlertEvent) -> Any:
    deliveries = list(row.deliveries.all())
    if not deliveries:
        return "silenced" if row.is_silenced else "to nobody"
    return format_html_join(" ", "{}{}", ((_delivery(one), _reason(one)) for one in deliveries))


def _delivery(one: AlertDelivery) -> SafeString:
    return status(one.state, _DELIVERIES[AlertDelivery.State(one.state)], f"{one.way}: {one.state}")


def _reason(one: AlertDelivery) -> SafeString | str:
    return format_html(" <small>{}</small>", one.last_error) if one.last_error else ""
