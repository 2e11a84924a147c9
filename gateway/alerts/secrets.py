from __future__ import annotations

import logging
import secrets
from uuid import UUID

from django.utils import timezone

from core.encryption import fernet as crypto
from gateway.tables.alert import AlertSecret

logger = logging.getLogger("gateway.alerts")

_PREFIX = "whsec_"


def ensure_secret(project_id: UUID) -> AlertSecret:
    row, _ = AlertSecret.objects.get_or_create(project_id=project_id, defaults={"token": _drawn()})
    return row


def secret_of(project_id: UUID) -> str:
    return crypto.decrypt(ensure_secret(project_id).token)


def rotate_secret(row: AlertSecret, *, actor: str) -> None:
    row.token, row.rotated_at = _drawn(), timezone.now()
    row.save(update_fields=["token", "rotated_at"])
    logger.info("alert_secret.rotated project_id=%s actor=%s", row.project_id, actor)


def _drawn() -> str:
    return crypto.encrypt(_PREFIX + secrets.token_urlsafe(32))
