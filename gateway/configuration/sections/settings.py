from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.configuration.problems import Path
from gateway.configuration.secrets import Secret, plain, without_kept
from gateway.configuration.sections.base import ACTOR, Differences, Section, Values, checked
from gateway.project_settings.api_fields import ValuesSerializer
from gateway.project_settings.declaration import declared, parts
from gateway.project_settings.settings import ProjectSettings
from gateway.project_settings.values import as_wire, by_part, read_settings, stored
from gateway.selectors import project_settings
from gateway.services import replace_settings

# The path of a webhook's address may hold a token.
_URL = "alert_webhook_url"


class SettingsSection(Section):
    name = "settings"
    defaults = {one.path: one.default for one in parts(ProjectSettings)}
    secrets = (_URL,)

    @classmethod
    def fields(cls) -> frozenset[str]:
        return frozenset(one.name for one in declared(ProjectSettings))

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        rest, secrets = self._given_secrets(given, path)
        address = secrets.get(_URL, Secret("")).value or ""
        validated = checked(ValuesSerializer, {**rest, _URL: address}, path)
        values = by_part(as_wire(read_settings(stored(validated))))
        del values[_URL]
        return {**values, **secrets}

    def stored(self) -> Mapping[str, Values]:
        values = by_part(as_wire(project_settings(self.project_id)))
        return {"": {**values, _URL: Secret(values[_URL], "stored" if values[_URL] else "empty")}}

    def change(self, name: str, values: Values, differences: Differences) -> None:
        nested: dict[str, Any] = {}
        values = without_kept(values)
        for field, value in plain(values).items():
            holder, _, inner = field.rpartition(".")
            (nested.setdefault(holder, {}) if holder else nested)[inner] = value
        data = checked(ValuesSerializer, nested, ())
        if _URL not in values:
            data = {field: value for field, value in data.items() if field != _URL}
        replace_settings(project_id=self.project_id, values=data, actor=ACTOR)

    def exported(self, name: str, values: Values) -> Values:
        nested: dict[str, Any] = {}
        for field, value in values.items():
            holder, _, inner = field.rpartition(".")
            if self.defaults[field] != value and value != Secret(""):
                (nested.setdefault(holder, {}) if holder else nested)[inner] = value
        return nested
