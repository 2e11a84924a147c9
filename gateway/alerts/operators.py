"""Alerts operators about the installation: a row in the admin, a signed webhook, an e-mail.

The database decides which host sends. While the database is down, each host sends on its own and saves the row later.
Nothing here needs Redis or Celery.
"""

from __future__ import annotations

import json
import logging
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from django.conf import settings
from django.db import DatabaseError, IntegrityError, InterfaceError, connection, transaction

from core.processes.background_tasks import keep_thread_running
from core.processes.monitoring import Alarm
from gateway.alerts import mail, webhook
from gateway.alerts.delivery import MAX_ATTEMPTS, pause_after
from gateway.alerts.errors import DeliveryError
from gateway.tables.alert import OperatorAlert

logger = logging.getLogger("gateway.alerts")

_UNAVAILABLE = (DatabaseError, InterfaceError)
_SAVE_AGAIN_SECONDS = 15.0
_MAX_WAITING = 1000


@dataclass
class OperatorMessage:
    alarm: Alarm
    is_over: bool
    host: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: str = field(default_factory=lambda: str(uuid4()))
    row: int | None = None

    @property
    def state(self) -> str:
        return "over" if self.is_over else "raised"

    @property
    def scope(self) -> str:
        return "" if self.alarm.is_shared else self.host

    def body(self) -> bytes:
        content = {
            "type": "operator.alert",
            "id": self.id,
            "state": self.state,
            "kind": self.alarm.kind,
            "subject": self.alarm.subject,
            "host": self.host,
            "message": self.alarm.text,
            "at": self.at.isoformat().replace("+00:00", "Z"),
        }
        return json.dumps(content, separators=(",", ":")).encode()

    def email(self) -> tuple[str, str]:
        word = "Over" if self.is_over else "Alert"
        what = " ".join(filter(None, (self.alarm.kind.replace("_", " "), self.alarm.subject)))
        text = f"{self.alarm.text}\n\nHost {self.host}, {self.at:%Y-%m-%d %H:%M:%S} UTC, {self.state}.\n"
        return f"{word}: {what} on {self.host}", text


class OperatorAlerts:
    """The operator alerts of one host. `report` returns at once; one background thread per channel sends."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._channels: dict[str, queue.Queue[OperatorMessage]] = {}
        self._rows: queue.Queue[OperatorMessage] = queue.Queue(_MAX_WAITING)
        for name, send in _channels().items():
            self._channels[name] = queue.Queue(_MAX_WAITING)
            keep_thread_running(f"alerts.{name}", partial(self._deliver, name, send))
        keep_thread_running("alerts.rows", self._keep_rows)

    def report(self, alarm: Alarm, is_over: bool) -> None:
        try:
            self._rows.put_nowait(OperatorMessage(alarm, is_over, self._host))
        except queue.Full:
            logger.error("operator_alert.dropped kind=%s", alarm.kind)

    def open_alarms(self) -> list[Alarm]:
        try:
            rows = OperatorAlert.objects.filter(over_at=None, host__in=["", self._host])
            return [Alarm(row.kind, row.text, row.subject, is_shared=not row.host) for row in rows]
        finally:
            connection.close()

    def _keep_rows(self) -> None:
        unsaved: list[OperatorMessage] = []
        while True:
            try:
                message = self._rows.get(timeout=_SAVE_AGAIN_SECONDS if unsaved else None)
            except queue.Empty:
                unsaved = self._save_again(unsaved)
                continue
            try:
                # Messages are saved in order: an earlier one that waits comes first.
                is_new = _save(message) if not unsaved else None
            except _UNAVAILABLE:
                is_new = None
            except Exception:
                logger.exception("operator_alert.not_saved kind=%s", message.alarm.kind)
                is_new = True
            if is_new is None:
                unsaved.append(message)
            if is_new is not False:
                for channel in self._channels.values():
                    channel.put(message)

    def _save_again(self, unsaved: list[OperatorMessage]) -> list[OperatorMessage]:
        for number, message in enumerate(unsaved):
            try:
                _save(message)
            except _UNAVAILABLE:
                return unsaved[number:]
        return []

    def _deliver(self, channel: str, send: Callable[[OperatorMessage], None]) -> None:
        waiting = self._channels[channel]
        while True:
            message = waiting.get()
            for attempt in range(1, MAX_ATTEMPTS + 1):
                outcome, is_done = _try(message, send)
                _note(message, channel, outcome)
                if is_done or attempt == MAX_ATTEMPTS:
                    break
                time.sleep(pause_after(attempt).total_seconds())


def _channels() -> dict[str, Callable[[OperatorMessage], None]]:
    found: dict[str, Callable[[OperatorMessage], None]] = {}
    url, addresses = settings.OPERATOR_ALERT_WEBHOOK_URL, settings.OPERATOR_ALERT_EMAILS
    if url:
        secret = settings.OPERATOR_ALERT_WEBHOOK_SECRET
        # The operator's own webhook address may be on a private network.
        found["webhook"] = lambda message: webhook.post(url, message.body(), secret, allow_private=True)
    if addresses:
        found["email"] = lambda message: mail.send_email(*message.email(), addresses)
    return found


def _save(message: OperatorMessage) -> bool:
    """Returns whether the message is new: no other host and no earlier process has reported it."""
    alarm = message.alarm
    open_ones = OperatorAlert.objects.filter(kind=alarm.kind, subject=alarm.subject, host=message.scope, over_at=None)
    try:
        if message.is_over:
            row = open_ones.first()
            if row is None or not open_ones.filter(pk=row.pk).update(over_at=message.at):
                return False
        else:
            with transaction.atomic():
                row = OperatorAlert.objects.create(
                    kind=alarm.kind,
                    subject=alarm.subject,
                    host=message.scope,
                    text=alarm.text,
                    raised_at=message.at,
                )
        message.row = row.pk
    except IntegrityError:
        return False
    finally:
        connection.close()
    return True


def _try(message: OperatorMessage, send: Callable[[OperatorMessage], None]) -> tuple[str, bool]:
    try:
        send(message)
    except DeliveryError as error:
        logger.warning("operator_alert.not_delivered kind=%s reason=%s", message.alarm.kind, error)
        return str(error), error.is_final
    except Exception:
        logger.exception("operator_alert.not_delivered kind=%s", message.alarm.kind)
        return "failed", True
    logger.info("operator_alert.delivered kind=%s state=%s", message.alarm.kind, message.state)
    return "delivered", True


def _note(message: OperatorMessage, channel: str, outcome: str) -> None:
    if message.row is None:
        return
    try:
        with transaction.atomic():
            row = OperatorAlert.objects.select_for_update().filter(pk=message.row).first()
            if row is not None:
                row.outcomes[f"{message.state} by {channel}"] = outcome
                row.save(update_fields=["outcomes"])
    except _UNAVAILABLE as error:
        logger.warning("operator_alert.not_noted error=%s", type(error).__name__)
    finally:
        connection.close()
