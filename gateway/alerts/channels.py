from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from core.encryption.fernet import UndecryptableSecretError, decrypt, encrypt
from core.errors import ValidationError
from core.resources.declaration import Resource
from gateway.alerts.secrets import ensure_secret
from gateway.tables.figure_alert import MAX_CHANNELS, AlertChannel
from integrations.access.credentials import MASK
from integrations.transport.addresses import check_webhook_url

_Kind = AlertChannel.Kind


class AlertChannels(Resource[AlertChannel]):
    model = AlertChannel
    maximum = MAX_CHANNELS
    missing = ("alert_channel_not_found", "The project has no such alert channel.")
    taken = ("alert_channel_exists", "The project has an alert channel {key!r} already.")
    full = ("too_many_alert_channels", "A project has at most {maximum} alert channels.")
    logged = (logging.getLogger("gateway.alerts"), "alert_channel", "channel_id")
    removed = "removed"

    def fill(self, row: AlertChannel, values: Mapping[str, Any]) -> None:
        """An omitted or masked address keeps its value."""
        super().fill(row, {name: value for name, value in values.items() if name not in ("url", "emails")})
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

    def finish(self, row: AlertChannel, values: Mapping[str, Any]) -> None:
        if row.kind == _Kind.WEBHOOK:
            ensure_secret(row.project_id)


CHANNELS = AlertChannels()


def masked_url(row: AlertChannel) -> str:
    """Returns only the host of a webhook's address, because the path may hold a token; empty for e-mail."""
    if not row.encrypted_url:
        return ""
    try:
        parts = urlsplit(decrypt(row.encrypted_url))
    except UndecryptableSecretError:
        return MASK
    return f"{parts.scheme}://{parts.netloc}/{MASK}"


def _set_url(row: AlertChannel, given: str) -> None:
    url = given.strip()
    if row.encrypted_url and (not url or url == masked_url(row)):
        return
    if not url or MASK in url:
        raise ValidationError.of_field("url", "Enter the whole address of the webhook.")
    check_webhook_url(url, allow_private=settings.ALLOW_PRIVATE_UPSTREAMS)
    row.encrypted_url = encrypt(url)
