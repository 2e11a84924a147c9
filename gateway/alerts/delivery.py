"""Delivers alerts, each channel on its own schedule. A failed delivery is retried; the alert is not raised again."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from core.encryption.fernet import UndecryptableSecretError
from gateway.alerts import mail, slack, webhook
from gateway.alerts.errors import DeliveryError
from gateway.alerts.messages import message_of
from gateway.alerts.recipients import address_of
from gateway.alerts.secrets import secret_of
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import AlertEvent

logger = logging.getLogger("gateway.alerts")

MAX_ATTEMPTS = 15
_FIRST_PAUSE_SECONDS = 30
_MAX_PAUSE_SECONDS = 3600

_State = AlertDelivery.State


def due_deliveries(now: datetime | None = None) -> list[int]:
    found = AlertDelivery.objects.filter(state=_State.PENDING, next_attempt_at__lte=now or timezone.now())
    return list(found.values_list("pk", flat=True))


def deliver(delivery_id: int) -> None:
    """Tries a delivery once, unless another worker holds it, it is not due, or it has ended."""
    row = AlertDelivery.objects.select_related("alert__project", "event", "receiver").filter(pk=delivery_id).first()
    if row is None or not _claim(row):
        return
    try:
        _send(row)
    except DeliveryError as error:
        _note_failure(row, error)
        return
    row.state, row.delivered_at, row.last_error = _State.DELIVERED, timezone.now(), ""
    row.save(update_fields=["state", "delivered_at", "last_error"])
    logger.info("alert.delivered alert_id=%s channel=%s", row.about.pk, row.channel)


def pause_after(attempts: int) -> timedelta:
    return timedelta(seconds=min(_FIRST_PAUSE_SECONDS * 2 ** (attempts - 1), _MAX_PAUSE_SECONDS))


def _claim(row: AlertDelivery) -> bool:
    """If the worker dies after the claim, the delivery is due again at its next time."""
    now = timezone.now()
    free = AlertDelivery.objects.filter(
        pk=row.pk, state=_State.PENDING, attempts=row.attempts, next_attempt_at__lte=now
    )
    row.attempts += 1
    return bool(free.update(attempts=F("attempts") + 1, next_attempt_at=now + pause_after(row.attempts)))


def _send(row: AlertDelivery) -> None:
    message, address = message_of(row), address_of(row)
    if row.channel == AlertDelivery.Channel.EMAIL:
        mail.send_email(message.subject, message.text, address.emails)
    elif row.channel == AlertDelivery.Channel.SLACK:
        webhook.post(address.url, slack.body_of(message))
    else:
        webhook.post(address.url, message.body(), _secret(row))


def _secret(row: AlertDelivery) -> str:
    try:
        return secret_of(row.about.project_id)
    except UndecryptableSecretError:
        raise DeliveryError("the signing secret cannot be decrypted; rotate it") from None


def _note_failure(row: AlertDelivery, error: DeliveryError) -> None:
    row.last_error = str(error)[:200]
    if error.is_final or row.attempts >= MAX_ATTEMPTS or _is_test(row):
        row.state = _State.FAILED
    row.save(update_fields=["state", "last_error"])
    logger.warning(
        "alert.not_delivered alert_id=%s channel=%s attempts=%d state=%s reason=%s",
        row.about.pk,
        row.channel,
        row.attempts,
        row.state,
        row.last_error,
    )


def _is_test(row: AlertDelivery) -> bool:
    """A test is tried only once: somebody waits for its outcome."""
    return row.event is not None and row.event.kind == AlertEvent.Kind.TEST
