from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core.encryption.fernet import UndecryptableSecretError, decrypt
from gateway.alerts.errors import DeliveryError
from gateway.project_settings.settings import ProjectSettings
from gateway.selectors import project_settings
from gateway.tables.alert import AlertDelivery, BudgetAlert
from gateway.tables.figure_alert import AlertChannel, AlertEvent

_Channel = AlertDelivery.Channel


@dataclass(frozen=True, slots=True)
class Address:
    url: str = ""
    emails: tuple[str, ...] = ()


def deliveries_of_project(about: BudgetAlert | AlertEvent) -> list[AlertDelivery]:
    project_id = about.project_id
    rows = AlertChannel.objects.for_project(project_id).filter(receives_project_alerts=True)
    by_settings = [_delivery(about, channel=channel) for channel in _channels(project_settings(project_id))]
    return by_settings + deliveries_by(about, rows)


def deliveries_by(about: BudgetAlert | AlertEvent, channels: Iterable[AlertChannel]) -> list[AlertDelivery]:
    return [_delivery(about, channel=row.kind, receiver=row, channel_name=row.name) for row in channels]


def address_of(row: AlertDelivery) -> Address:
    """Returns the current address, which may have been corrected since the alert. Raises DeliveryError."""
    address = _of_channel(row.receiver) if row.channel_name else _of_settings(row)
    if not (address.emails if row.channel == _Channel.EMAIL else address.url):
        raise DeliveryError("the address is no longer set", is_final=True)
    return address


def _of_settings(row: AlertDelivery) -> Address:
    given = project_settings(row.about.project_id)
    return Address(given.alert_webhook_url, tuple(given.alert_emails))


def _of_channel(receiver: AlertChannel | None) -> Address:
    if receiver is None:
        raise DeliveryError("the channel was removed", is_final=True)
    try:
        url = decrypt(receiver.encrypted_url) if receiver.encrypted_url else ""
    except UndecryptableSecretError:
        raise DeliveryError("the address of the channel cannot be decrypted; enter it again") from None
    return Address(url, tuple(receiver.emails))


def _channels(settings: ProjectSettings) -> list[_Channel]:
    channels = []
    if settings.alert_webhook_url:
        channels.append(_Channel.WEBHOOK)
    if settings.alert_emails:
        channels.append(_Channel.EMAIL)
    return channels


def _delivery(about: BudgetAlert | AlertEvent, **given: Any) -> AlertDelivery:
    return AlertDelivery(**{"alert" if isinstance(about, BudgetAlert) else "event": about}, **given)
