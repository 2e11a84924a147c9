"""Makes, changes and removes the channels of a project's alerts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from core.encryption.fernet import UndecryptableError, decrypt, encrypt
from core.errors import ConflictError, NotFoundError, ValidationError
from core.models import Project
from gateway.alerts.secrets import ensure_secret
from gateway.tables.figure_alert import MAX_CHANNELS, AlertChannel
from integrations.access.credentials import MASK
from integrations.transport.addresses import check_webhook_url

logger = logging.getLogger("gateway.alerts")

_Kind = AlertChannel.Kind


def list_channels(project_id: UUID) -> QuerySet[AlertChannel]:
    return AlertChannel.objects.for_project(project_id)


def get_channel(project_id: UUID, channel_id: UUID) -> AlertChannel:
    """Returns a channel of the project. Raises NotFoundError."""
    row = list_channels(project_id).filter(pk=channel_id).first()
    if row is None:
        raise NotFoundError("The project has no such alert channel.", code="alert_channel_not_found")
    return row


def add_channel(project_id: UUID, values: Mapping[str, Any], *, actor: str) -> AlertChannel:
    """Returns the new channel. Raises ConflictError and ValidationError."""
    with transaction.atomic():
        # Two calls at once would each find room for one more.
        Project.objects.select_for_update().get(pk=project_id)
        if list_channels(project_id).count() >= MAX_CHANNELS:
            raise ConflictError(f"A project has at most {MAX_CHANNELS} alert channels.", code="too_many_alert_channels")
        row = _save(AlertChannel(project_id=project_id, kind=values["kind"]), values)
    logger.info("alert_channel.created project_id=%s channel_id=%s actor=%s", project_id, row.pk, actor)
    return row


def change_channel(project_id: UUID, channel_id: UUID, values: Mapping[str, Any], *, actor: str) -> AlertChannel:
    """Returns the channel with these values; one that is not among them, or an address that is masked, stays as it is.
    Raises NotFoundError, ConflictError and ValidationError."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project_id)
        row = _save(get_channel(project_id, channel_id), values)
    logger.info("alert_channel.changed project_id=%s channel_id=%s actor=%s", project_id, channel_id, actor)
    return row


def remove_channel(project_id: UUID, channel_id: UUID, *, actor: str) -> None:
    """Removes a channel: its alerts keep their other ones. Raises NotFoundError."""
    get_channel(project_id, channel_id).delete()
    logger.info("alert_channel.removed project_id=%s channel_id=%s actor=%s", project_id, channel_id, actor)


def masked_url(row: AlertChannel) -> str:
    """Returns the host of a webhook's address, without what may be a token; empty for e-mail."""
    if not row.encrypted_url:
        return ""
    try:
        parts = urlsplit(decrypt(row.encrypted_url))
    except UndecryptableError:
        return MASK
    return f"{parts.scheme}://{parts.netloc}/{MASK}"


def _save(row: AlertChannel, values: Mapping[str, Any]) -> AlertChannel:
    for name in ("name", "receives_project_alerts"):
        setattr(row, name, values.get(name, getattr(row, name)))
    url, emails = values.get("url", ""), values.get("emails", [])
    if row.kind == _Kind.EMAIL:
        if url:
            raise ValidationError.of_field("url", "An e-mail channel has no address of a webhook.")
        row.emails = emails or row.emails
        if not row.emails:
            raise ValidationError.of_field("emails", "At least one address is needed.")
    else:
        if emails:
            raise ValidationError.of_field("emails", "A webhook has no e-mail addresses.")
        _set_url(row, url)
    if list_channels(row.project_id).exclude(pk=row.pk).filter(name=row.name).exists():
        raise ConflictError(f"The project has an alert channel {row.name!r} already.", code="alert_channel_exists")
    row.save()
    if row.kind == _Kind.WEBHOOK:
        # Its receiver needs the secret before the first message.
        ensure_secret(row.project_id)
    return row


def _set_url(row: AlertChannel, given: str) -> None:
    url = given.strip()
    if row.encrypted_url and (not url or url == masked_url(row)):
        return
    if not url or MASK in url:
        raise ValidationError.of_field("url", "Enter the whole address of the webhook.")
    check_webhook_url(url, allow_private=settings.ALLOW_PRIVATE_UPSTREAMS)
    row.encrypted_url = encrypt(url)
