"""Checks the alerts that are due. Several workers may run at once: each alert is checked by one of them."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from gateway.figure_alerts.events import add_event
from gateway.figure_alerts.look import Look, look_at
from gateway.tables.figure_alert import AlertEvent, FigureAlert

logger = logging.getLogger("gateway.alerts")

# The work of one run, which ends before the next one is due. What is left is due in the next, the longest ago first.
MAX_LOOKS = 200
MAX_SECONDS = 20.0
# After two looks in a row that the request log did not answer, each further one would wait for the same.
_MAX_UNANSWERED = 2
# A window of an hour changes from minute to minute, one of a week hardly does. The first is a little less than a
# minute, so that every second of the runs, which come twice a minute, finds the alert due.
_EVERY = ((60, timedelta(seconds=55)), (24 * 60, timedelta(minutes=5)), (7 * 24 * 60, timedelta(minutes=15)))
_UNANSWERED = "The request log did not answer at the latest look."
_TOO_HARD = "The figure takes more time or memory than it may: choose a shorter window or fewer requests."


_Kind, _State = AlertEvent.Kind, FigureAlert.State
# What receivers hear of, and the kind of event that tells them.
_BEGINS = {_State.FIRING: _Kind.FIRED, _State.BROKEN: _Kind.BROKEN}


@dataclass(frozen=True, slots=True)
class Transition:
    kind: AlertEvent.Kind
    is_sent: bool


def transition(alert: FigureAlert, state: str, now: datetime) -> Transition | None:
    """Returns what the new `state` of an alert brings, None for nothing.

    A silenced alert sends nothing; what its receivers do not know when the silence ends is sent then. Without data
    nothing is sent: only a figure resolves an alert that fired.
    """
    if state == _State.NO_DATA:
        return None if alert.state == state else Transition(_Kind.NO_DATA, is_sent=False)
    if state == _State.OK:
        return _ended(alert, now)
    is_owed = alert.told_state != state
    is_sent = not _is_silenced(alert, now) and (is_owed or _is_to_be_repeated(alert, now))
    kind = _BEGINS[_State(state)]
    if alert.state != state:
        return Transition(kind, is_sent)
    if not is_sent:
        return None
    return Transition(kind if is_owed or kind is _Kind.BROKEN else _Kind.REPEATED, is_sent=True)


def _ended(alert: FigureAlert, now: datetime) -> Transition | None:
    is_sent = alert.told_state != "" and not _is_silenced(alert, now)
    if not is_sent and alert.state not in _BEGINS:
        return None
    return Transition(_Kind.RESOLVED, is_sent)


def _is_silenced(alert: FigureAlert, now: datetime) -> bool:
    return alert.silenced_until is not None and alert.silenced_until > now


def _is_to_be_repeated(alert: FigureAlert, now: datetime) -> bool:
    if alert.repeat_minutes is None or alert.told_at is None:
        return False
    return now >= alert.told_at + timedelta(minutes=alert.repeat_minutes)


def is_any_due() -> bool:
    return _due().exists()


def check_due_alerts() -> int:
    began, looks, unanswered = time.monotonic(), 0, 0
    while looks < MAX_LOOKS and time.monotonic() - began < MAX_SECONDS and unanswered < _MAX_UNANSWERED:
        alert = _claim()
        if alert is None:
            break
        looks += 1
        unanswered = 0 if _checked(alert) else unanswered + 1
    return looks


def distance(window_minutes: int) -> timedelta:
    return next(every for longest, every in _EVERY if window_minutes <= longest)


def _due() -> QuerySet[FigureAlert]:
    return FigureAlert.objects.filter(next_check_at__lte=timezone.now())


def _claim() -> FigureAlert | None:
    """If the worker dies after the claim, the alert is due again at its next time."""
    while True:
        alert = _due().order_by("next_check_at").select_related("project").first()
        if alert is None:
            return None
        claimed = timezone.now() + distance(alert.window_minutes)
        free = FigureAlert.objects.filter(pk=alert.pk, next_check_at=alert.next_check_at)
        if free.update(next_check_at=claimed):
            alert.next_check_at = claimed
            return alert


def _checked(alert: FigureAlert) -> bool:
    now = timezone.now()
    try:
        look = look_at(alert, now)
    except AnalyticsUnavailableError:
        _keep_problem(alert, _UNANSWERED)
        return False
    except AnalyticsLimitError:
        _keep_problem(alert, _TOO_HARD)
        return True
    except Exception:
        # A defect with one alert leaves the others to be looked at.
        logger.exception("alert.check_failed project_id=%s alert_id=%s", alert.project_id, alert.pk)
        return True
    _keep(alert, look, now)
    return True


def _keep(claimed: FigureAlert, look: Look, now: datetime) -> None:
    """Saves nothing if the alert was changed, removed or checked meanwhile."""
    with transaction.atomic():
        found = FigureAlert.objects.select_for_update().filter(pk=claimed.pk, next_check_at=claimed.next_check_at)
        alert = found.first()
        if alert is None:
            return
        step = transition(alert, look.state, now)
        if alert.state != look.state or alert.state_since is None:
            alert.state, alert.state_since = look.state, now
        alert.problem, alert.value, alert.value_before = look.problem[:300], look.value, look.value_before
        alert.measured_count, alert.checked_at = look.count, now
        if step is not None:
            add_event(alert, step.kind, look, now, is_sent=step.is_sent, is_silenced=_is_silenced(alert, now))
        if step is not None and step.is_sent:
            alert.told_state = "" if look.state == FigureAlert.State.OK else look.state
            alert.told_at = now
        alert.save(update_fields=_LOOKED_AT)
    if step is not None:
        logger.info("alert.%s project_id=%s alert_id=%s", step.kind.value, alert.project_id, alert.pk)


_LOOKED_AT = (
    "state", "state_since", "problem", "value", "value_before", "measured_count", "checked_at", "told_state", "told_at",
)  # fmt: skip


def _keep_problem(alert: FigureAlert, problem: str) -> None:
    FigureAlert.objects.filter(pk=alert.pk, next_check_at=alert.next_check_at).update(problem=problem)
    logger.warning("alert.not_looked_at project_id=%s alert_id=%s", alert.project_id, alert.pk)
