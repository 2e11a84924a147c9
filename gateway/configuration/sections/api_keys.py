from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from core.errors import ValidationError
from core.keys.serializers import NewApiKeySerializer
from core.keys.services import LIMIT_FIELDS, change_key, hash_key, issue_key, replace_secret, revoke_key
from core.models import NAME_CHARACTERS, ApiKey, Team
from gateway.configuration.problems import Path
from gateway.configuration.secrets import Secret
from gateway.configuration.sections.base import Differences, EntriesSection, Values, checked, refuse_change, told_apart

_FIELD = "secret"
_MISSING = "The key is new: say where its secret is found, or have one made by --new-keys FILE."
_MADE = Secret("", "a new secret, written to --new-keys")


class _FileKeySerializer(NewApiKeySerializer):
    team = serializers.CharField(required=False, allow_blank=True, max_length=NAME_CHARACTERS)
    team_id = None  # type: ignore[assignment]  # takes the field away


class ApiKeysSection(EntriesSection):
    """Keys by name, without revoked ones. Keys that share a name get their visible prefix appended.

    Expired keys are found, but neither exported nor pruned.
    """

    name = "api_keys"
    without_default = ("scopes",)
    secrets = (_FIELD,)
    defaults = {
        "expires_at": None,
        "team": "",
        **dict.fromkeys(LIMIT_FIELDS),
        "allowed_models": [],
        "allowed_providers": [],
        "metadata": {},
    }

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        rest, secrets = self._given_secrets(given, path)
        team = rest.pop("team", "") or ""
        data = checked(_FileKeySerializer, {**rest, "name": name, "team": team}, path)
        values = {field: data.get(field, default) for field, default in self.defaults.items()}
        given_secrets = {field: secret for field, secret in secrets.items() if secret.value != ""}
        return {"scopes": sorted(set(data["scopes"])), **values, **given_secrets}

    def stored(self) -> Mapping[str, Values]:
        return {name: self._values(row) for name, row in self._rows().items()}

    def differences(self, wanted: Values, stored: Values) -> Differences:
        found = super().differences(wanted, stored)
        given = wanted.get(_FIELD)
        if isinstance(given, Secret) and given.value and hash_key(given.value) == stored[_FIELD].value:
            del found[_FIELD]
        return found

    def settle(self, wanted: Values, stored: Values | None, path: Path) -> Values:
        if stored is not None and wanted.get(_FIELD) == Secret(None):
            wanted = {field: value for field, value in wanted.items() if field != _FIELD}
        if stored is None and _FIELD not in wanted:
            wanted = {**wanted, _FIELD: _MADE}
        return super().settle(wanted, stored, path)

    def create(self, name: str, values: Values) -> None:
        given = values.get(_FIELD)
        secret = given.value if given is not None else ""
        if not secret and self.new_keys.made is None:
            raise ValidationError(f"{_FIELD}: {_MISSING}", details={_FIELD: [_MISSING]})
        columns = self._columns({field: value for field, value in values.items() if field not in ("scopes", _FIELD)})
        _, made = issue_key(self.project, name=name, scopes=values["scopes"], secret=secret or None, **columns)
        if not secret and self.new_keys.made is not None:
            self.new_keys.made.setdefault(self.project.name, {})[name] = made

    def change(self, name: str, values: Values, differences: Differences) -> None:
        refuse_change(differences, "scopes")
        row = self._rows()[name]
        columns = self._columns({field: values[field] for field in differences if field != _FIELD})
        if columns:
            change_key(row, columns)
        if _FIELD in differences:
            replace_secret(row, values[_FIELD].value)

    def delete(self, name: str) -> None:
        revoke_key(self._rows()[name])

    def unused(self, wanted: Any, stored: Mapping[str, Values]) -> list[str]:
        return [name for name in super().unused(wanted, stored) if self.is_exported(stored[name])]

    def is_exported(self, values: Values) -> bool:
        ends = values["expires_at"]
        return ends is None or ends > timezone.now()

    def exported(self, name: str, values: Values) -> Values:
        found = super().exported(name, values)
        del found[_FIELD]
        return found

    def _rows(self) -> dict[str, ApiKey]:
        rows = ApiKey.objects.for_project(self.project_id).filter(revoked_at=None).select_related("team")
        return told_apart(rows.order_by("name", "pk"), lambda row: row.prefix)

    def _values(self, row: ApiKey) -> Values:
        values = {field: getattr(row, field) for field in self.defaults if field != "team"}
        # The hash stands for the secret, which nobody knows any more.
        return {
            "scopes": sorted(row.scopes),
            **values,
            "team": row.team.name if row.team is not None else "",
            _FIELD: Secret(row.key_hash),
        }

    def _columns(self, values: Values) -> Values:
        columns = dict(values)
        if "team" in columns:
            name = columns.pop("team")
            columns["team_id"] = self._team_id(name) if name else None
        return columns

    def _team_id(self, name: str) -> int:
        found = Team.objects.for_project(self.project_id).filter(name=name).values_list("pk", flat=True).first()
        if found is None:
            problem = f"The project has no team {name!r}."
            raise ValidationError(f"team: {problem}", details={"team": [problem]})
        return found
