from __future__ import annotations

from core.encryption.fernet import decrypt
from gateway.alerts.channels import CHANNELS
from gateway.configuration.secrets import stored_secret
from gateway.configuration.sections.base import Differences, Values, refuse_change
from gateway.configuration.sections.resource import ResourceSection
from gateway.figure_alerts.serializers import NewAlertChannelSerializer
from gateway.tables.figure_alert import AlertChannel


class AlertChannelsSection(ResourceSection):
    name = "alert_channels"
    without_default = ("kind",)
    secrets = ("url",)
    defaults = {"emails": [], "receives_project_alerts": False}
    resource = CHANNELS
    body = NewAlertChannelSerializer

    def change(self, name: str, values: Values, differences: Differences) -> None:
        refuse_change(differences, "kind")
        super().change(name, values, differences)

    def values_of(self, row: AlertChannel) -> Values:
        values = super().values_of(row)
        if row.encrypted_url:
            values["url"] = stored_secret(lambda: decrypt(row.encrypted_url))
        return values
