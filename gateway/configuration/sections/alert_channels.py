"""The section `alert_channels`: where messages of alerts go (docs/alerts.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.encryption.fernet import decrypt
from gateway.alerts.channels import add_channel, change_channel, list_channels, remove_channel
from gateway.configuration.problems import Path
from gateway.configuration.secrets import plain, stored_secret, without_kept
from gateway.configuration.sections.base import ACTOR, Differences, EntriesSection, Values, checked, refuse_change
from gateway.figure_alerts.serializers import NewAlertChannelSerializer
from gateway.tables.figure_alert import AlertChannel


class AlertChannelsSection(EntriesSection):
    name = "alert_channels"
    without_default = ("kind",)
    secrets = ("url",)
    defaults = {"emails": [], "receives_project_alerts": False}

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        rest, secrets = self._given_secrets(given, path)
        data = checked(NewAlertChannelSerializer, {**rest, "name": name}, path)
        values = {field: data.get(field, default) for field, default in self.defaults.items()}
        return {"kind": data["kind"], **values, **secrets}

    def stored(self) -> Mapping[str, Values]:
        return {row.name: _values(row) for row in list_channels(self.project_id)}

    def create(self, name: str, values: Values) -> None:
        add_channel(self.project_id, {"name": name, **plain(values)}, actor=ACTOR)

    def change(self, name: str, values: Values, differences: Differences) -> None:
        refuse_change(differences, "kind")
        change_channel(self.project_id, self._row(name).pk, plain(without_kept(values)), actor=ACTOR)

    def delete(self, name: str) -> None:
        remove_channel(self.project_id, self._row(name).pk, actor=ACTOR)

    def _row(self, name: str) -> AlertChannel:
        return list_channels(self.project_id).get(name=name)


def _values(row: AlertChannel) -> Values:
    values: Values = {
        "kind": row.kind,
        "emails": list(row.emails),
        "receives_project_alerts": row.receives_project_alerts,
    }
    if row.encrypted_url:
        values["url"] = stored_secret(lambda: decrypt(row.encrypted_url))
    return values
