"""Makes, changes, silences, tries and deletes alerts on figures."""

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
from core.errors import ConflictError, NotFoundError, ValidationError
from core.models import Project
from gateway.alerts.channels import list_channels
from gateway.alerts.delivery import deliver
from gateway.figure_alerts.events import add_event
from gateway.figure_alerts.look import Look
from gateway.figure_alerts.subjects import missing_subject
from gateway.figure_alerts.words import CHANGES
from gateway.tables.figure_alert import MAX_ALERTS, AlertChannel, AlertEvent, FigureAlert

logger = logging.getLogger("gateway.alerts")

MAX_SILENCE = timedelta(days=365)
_Condition = FigureAlert.Condition
_FIELDS = ("name", "condition", "threshold", "window_minutes", "min_requests", "repeat_minutes")


def list_alerts(project_id: UUID) -> QuerySet[FigureAlert]:
    return FigureAlert.objects.for_project(project_id).prefetch_related("channels")


def get_alert(project_id: UUID, alert_id: UUID) -> FigureAlert:
    """Returns an alert of the project. Raises NotFoundError."""
    row = list_alerts(project_id).select_related("project").filter(pk=alert_id).first()
    if row is None:
        raise NotFoundError("The project has no such alert.", code="alert_not_found")
    return row


def list_events(alert: FigureAlert) -> QuerySet[AlertEvent]:
    """Returns the history of an alert, the latest entry first."""
    return alert.events.prefetch_related("deliveries")


def create_alert(project_id: UUID, values: Mapping[str, Any], *, actor: str) -> FigureAlert:
    """Returns the new alert, which is looked at within half a minute. Raises ConflictError and ValidationError."""
    with transaction.atomic():
        # Two calls at once would each find room for one more.
        Project.objects.select_for_update().get(pk=project_id)
        if FigureAlert.objects.for_project(project_id).count() >= MAX_ALERTS:
            raise ConflictError(f"A project has at most {MAX_ALERTS} alerts.", code="too_many_alerts")
        row = _save(FigureAlert(project_id=project_id, created_by=actor), values)
    logger.info("alert.created project_id=%s alert_id=%s actor=%s", project_id, row.pk, actor)
    return get_alert(project_id, row.pk)


def change_alert(project_id: UUID, alert_id: UUID, values: Mapping[str, Any], *, actor: str) -> FigureAlert:
    """Returns the alert with these values; one that is not among them stays as it is. It is looked at anew. Raises
    NotFoundError, ConflictError and ValidationError."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project_id)
        _save(get_alert(project_id, alert_id), values)
    logger.info("alert.changed project_id=%s alert_id=%s actor=%s", project_id, alert_id, actor)
    return get_alert(project_id, alert_id)


def delete_alert(project_id: UUID, alert_id: UUID, *, actor: str) -> None:
    """Deletes an alert with its history. Raises NotFoundError."""
    get_alert(project_id, alert_id).delete()
    logger.info("alert.deleted project_id=%s alert_id=%s actor=%s", project_id, alert_id, actor)


def silence_alert(project_id: UUID, alert_id: UUID, until: datetime | None, *, actor: str) -> FigureAlert:
    """Returns the alert, which sends nothing until then; None ends the silence. Raises NotFoundError and
    ValidationError."""
    row, now = get_alert(project_id, alert_id), timezone.now()
    if until is not None and not now < until <= now + MAX_SILENCE:
        raise ValidationError.of_field("until", "Must be in the future, and at most a year away.")
    row.silenced_until = until
    # The end of a silence may owe a message.
    row.next_check_at = now if until is None else row.next_check_at
    row.save(update_fields=["silenced_until", "next_check_at"])
    logger.info("alert.silenced project_id=%s alert_id=%s until=%s actor=%s", project_id, alert_id, until, actor)
    return row


def send_test(project_id: UUID, alert_id: UUID, *, actor: str) -> AlertEvent:
    """Sends one test message by each channel of the alert at once, and returns its entry in the history with what
    became of it. Raises NotFoundError, and ValidationError for an alert without channels."""
    row = get_alert(project_id, alert_id)
    if not row.channels.all():
        raise ValidationError.of_field("channels", "The alert has no channel that a message could be sent by.")
    with transaction.atomic():
        event = add_event(row, AlertEvent.Kind.TEST, Look(row.state), timezone.now(), is_sent=True)
    for delivery in event.deliveries.all():
        deliver(delivery.pk)
    logger.info("alert.tested project_id=%s alert_id=%s actor=%s", project_id, alert_id, actor)
    return event


def _save(row: FigureAlert, values: Mapping[str, Any]) -> FigureAlert:
    for name in _FIELDS:
        setattr(row, name, values.get(name, getattr(row, name)))
    if "query" in values:
        row.query = _checked_query(row.project_id, values["query"])
    _check_threshold(row)
    channels = _channels(row.project_id, values["channels"]) if "channels" in values else None
    others = FigureAlert.objects.for_project(row.project_id).exclude(pk=row.pk)
    if others.filter(name=row.name).exists():
        raise ConflictError(f"The project has an alert {row.name!r} already.", code="alert_exists")
    # A look that goes on meanwhile finds another time here and is dropped.
    row.next_check_at = timezone.now()
    row.save()
    if channels is not None:
        if not row.channels.exists():
            # Whoever is told from now on has heard nothing yet.
            row.told_state = ""
        row.channels.set(channels)
        # The audit log compares the channels of this save with those of the one before.
        row.save()
    return row


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
    found = {row.pk: row for row in list_channels(project_id).filter(pk__in=ids)}
    for number, channel_id in enumerate(ids):
        if channel_id not in found:
            raise ValidationError.of_field(f"channels.{number}", "The project has no such alert channel.")
    return list(found.values())
