from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.encryption.fernet import decrypt
from gateway.configuration.problems import Path, within
from gateway.configuration.secrets import Secret, plain, read_secrets, stored_secret, stored_secrets
from gateway.configuration.sections.base import Differences, EntriesSection, Values, checked, refuse_change
from integrations.access.checked_deployments import checked_models, checked_prices
from integrations.access.completeness import checked_service_account
from integrations.access.credentials import extra_names, is_service_account, masked_headers, stored_headers
from integrations.models import ProviderIntegration
from integrations.selectors import project_integrations
from integrations.serializers import OPTIONS, SECRET_EXTRA, NewIntegrationSerializer, change_of
from integrations.services import add_integration, remove_integration, update_integration

_SECRETS = ("api_key", *SECRET_EXTRA)
_HEADERS = "extra_headers"
_PLAIN = ("enabled", "own_account", "base_url", "weight", "priority", "rpm", "tpm")


class IntegrationsSection(EntriesSection):
    name = "integrations"
    without_default = ("provider", _HEADERS)
    secrets = _SECRETS
    defaults = {
        "enabled": True,
        "own_account": False,
        "base_url": "",
        **dict.fromkeys(OPTIONS, ""),
        "weight": 1,
        "priority": 0,
        "rpm": None,
        "tpm": None,
        "models": [],
        "prices": [],
        "default_parameters": {},
        "forced_parameters": {},
        "forward_headers": None,
    }

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        rest, secrets = self._given_secrets(given, path)
        headers = read_secrets(rest.pop(_HEADERS, None), (*path, _HEADERS))
        data = checked(NewIntegrationSerializer, {"provider": name, **rest, "name": name}, path)
        fields = {field: data.get(field, default) for field, default in self.defaults.items()}
        values: Values = {"provider": data["provider"], **fields}
        with within(path):
            values["models"] = checked_models(values["models"])
            values["prices"] = checked_prices(values["prices"])
            if "api_key" in secrets:
                secrets["api_key"] = _as_stored(secrets["api_key"])
        values["base_url"] = values["base_url"].strip().rstrip("/")
        return {**values, **secrets, **({} if headers is None else {_HEADERS: headers})}

    def stored(self) -> Mapping[str, Values]:
        return {row.name: _values(row) for row in project_integrations(self.project_id)}

    def create(self, name: str, values: Values) -> None:
        own = {field: value for field, value in values.items() if self.defaults.get(field, ...) != value}
        change = change_of(plain(own))
        add_integration(project_id=self.project_id, provider=values["provider"], name=name, change=change, trusted=True)

    def change(self, name: str, values: Values, differences: Differences) -> None:
        refuse_change(differences, "provider")
        kept = {field: value for field, value in values.items() if field in differences or isinstance(value, Secret)}
        if _HEADERS in values:
            kept[_HEADERS] = values[_HEADERS]
        update_integration(project_id=self.project_id, name=name, change=change_of(plain(kept)), trusted=True)

    def delete(self, name: str) -> None:
        remove_integration(project_id=self.project_id, name=name)

    def exported(self, name: str, values: Values) -> Values:
        found = super().exported(name, values)
        if found["provider"] == name:
            del found["provider"]
        for entry in found.get("models", ()):
            if entry["deployment"] == entry["model"]:
                del entry["deployment"]
        if "prices" in found:
            found["prices"] = [{key: cost for key, cost in one.items() if cost is not None} for one in found["prices"]]
        return found


def _values(row: ProviderIntegration) -> Values:
    values: Values = {
        "provider": row.provider,
        **{field: getattr(row, field) for field in _PLAIN},
        **{name: row.options.get(name, "") for name in OPTIONS},
        "models": [dict(entry) for entry in row.served_models],
        "prices": [dict(entry) for entry in row.own_prices],
        "default_parameters": row.default_parameters,
        "forced_parameters": row.forced_parameters,
        "forward_headers": row.forward_headers,
    }
    if row.encrypted_secret:
        values["api_key"] = stored_secret(lambda: decrypt(row.encrypted_secret))
    if row.encrypted_extra:
        values |= stored_secrets(extra_names(row), lambda: json.loads(decrypt(row.encrypted_extra)))
    if row.encrypted_headers:
        values[_HEADERS] = stored_secrets(masked_headers(row), lambda: stored_headers(row))
    return values


def _as_stored(secret: Secret) -> Secret:
    if not secret.value or not is_service_account(secret.value):
        return secret
    return replace(secret, value=checked_service_account(secret.value, any_token_server=True))
