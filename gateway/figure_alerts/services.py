from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from analytics.figures.query import FigureQuery
from analytics.figures.registry import FIGURES, FigureUnit
from core.errors import ValidationError
from core.resources.declaration import Resource
from gateway.alerts.channels import CHANNELS
from gateway.alerts.delivery import deliver
from gateway.figure_alerts.events import add_event
from gateway.figure_alerts.look import Look
from gateway.figure_alerts.subjects import missing_subject
from gateway.figure_alerts.words import CHANGES
from gateway.tables.figure_alert import MAX_ALERTS, AlertChannel, AlertEvent, FigureAlert

logger = logging.getLogger("gateway.alerts")

MAX_SILENCE = timedelta(days=365)
_Condition = FigureAlert.Condition


class FigureAlerts(Resource[FigureAlert]):
    """An alert is checked within half a minute after it was made or changed."""

    model = FigureAlert
    maximum = MAX_ALERTS
    missing = ("alert_not_found", "The project has no such alert.")
    taken = ("alert_exists", "The project has an alert {key!r} already.")
    full = ("too_many_alerts", "A project has at most {maximum} alerts.")
    logged = (logger, "alert", "alert_id")

    def rows(self, project_id: UUID) -> QuerySet[FigureAlert]:
        return super().rows(project_id).select_related("project").prefetch_related("channels")

    def new(self, project_id: UUID, actor: str) -> FigureAlert:
        return FigureAlert(project_id=project_id, created_by=actor)

    def fill(self, row: FigureAlert, values: Mapping[str, Any]) -> None:
        super().fill(row, {name: value for name, value in values.items() if name not in ("query", "channels")})
        if "query" in values:
            row.query = _checked_query(row.project_id, values["query"])
        _check_threshold(row)
        # A look that goes on meanwhile finds another time here and is dropped.
        row.next_check_at = timezone.now()

    def finish(self, row: FigureAlert, values: Mapping[str, Any]) -> None:
        if "channels" not in values:
            return
        if not row.channels.exists():
            # Whoever is told from now on has heard nothing yet.
            row.told_state = ""
        row.channels.set(_channels(row.project_id, values["channels"]))
        # The audit log compares the channels of this save with those of the one before.
        row.save()


ALERTS = FigureAlerts()


def list_events(alert: FigureAlert) -> QuerySet[AlertEvent]:
    return alert.events.prefetch_related("deliveries")


def silence_alert(project_id: UUID, alert_id: UUID, until: datetime | None, *, actor: str) -> FigureAlert:
    """Sends nothing until `until`; None ends the silence. Raises NotFoundError and ValidationError."""
    row, now = ALERTS.get(project_id, alert_id), timezone.now()
    if until is not None and not now < until <= now + MAX_SILENCE:
        raise ValidationError.of_field("until", "Must be in the future, and at most a year away.")
    row.silenced_until = until
    # The end of a silence may owe a message.
    row.next_check_at = now if until is None else row.next_check_at
    row.save(update_fields=["silenced_until", "next_check_at"])
    logger.info("alert.silenced project_id=%s alert_id=%s until=%s actor=%s", project_id, alert_id, until, actor)
    return row


def send_test(project_id: UUID, alert_id: UUID, *, actor: str) -> AlertEvent:
    """Sends one test message per channel at once, and returns its entry in the history with the outcome.

    Raises NotFoundError, and ValidationError for an alert without channels.
    """
    row = ALERTS.get(project_id, alert_id)
    if not row.channels.all():
        raise ValidationError.of_field("channels", "The alert has no channel that a message could be sent by.")
    with transaction.atomic():
        event = add_event(row, AlertEvent.Kind.TEST, Look(row.state), timezone.now(), is_sent=True)
    for delivery in event.deliveries.all():
        deliver(delivery.pk)
    logger.info("alert.tested project_id=%s alert_id=%s actor=%s", project_id, alert_id, actor)
    return event


def _checked_query(project_id: UUID, given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        query = FigureQuery.from_json(given)
    except ValidationError as error:
        details = {f"query.{name}": problems for name, problems in (error.details or {}).items()}
        raise ValidationError(f"query.{error.message}", details=details) from None
    if query.group_by:
        raise ValidationError.of_field(
            "query.group_by", "An alert watches one value: choose a filter in place of a group."
        )
    missing = missing_subject(project_id, query.filters)
    if missing is not None:
        raise ValidationError.of_field(
            f"query.filters.{missing[0]}", f"The project has no such {missing[1]}, or not any more."
        )
    return query.as_json()


def _check_threshold(row: FigureAlert) -> None:
    unit = FIGURES[row.query["figure"]].unit if row.query["figure"] in FIGURES else None
    if row.condition in CHANGES:
        if row.threshold <= 0:
            raise ValidationError.of_field("threshold", "A change is more than 0 percent.")
        if row.condition == _Condition.FALLS and row.threshold > 100:
            raise ValidationError.of_field("threshold", "Nothing falls by more than 100 percent.")
    elif unit is FigureUnit.SHARE and not 0 <= row.threshold <= 1:
        raise ValidationError.of_field("threshold", "A share is from 0 to 1.")
    elif unit is not FigureUnit.SCORE and row.threshold < 0:
        raise ValidationError.of_field("threshold", "Must not be below 0.")


def _channels(project_id: UUID, ids: Sequence[UUID]) -> list[AlertChannel]:
    found = {row.pk: row for row in CHANNELS.rows(project_id).filter(pk__in=ids)}
    for number, channel_id in enumerate(ids):
        if channel_id not in found:
            raise ValidationError.of_field(f"channels.{number}", "The project has no such alert channel.")
    return list(found.values())
