from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.serializers import BaseSerializer

from core.resources.declaration import Resource
from gateway.configuration.problems import Path
from gateway.configuration.secrets import plain, without_kept
from gateway.configuration.sections.base import ACTOR, Differences, EntriesSection, Values, checked


class ResourceSection(EntriesSection):
    resource: ClassVar[Resource[Any]]
    body: ClassVar[type[BaseSerializer[Any]]]

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        rest, secrets = self._given_secrets(given, path)
        data = checked(self.body, {**rest, self.resource.key: name}, path)
        values = {field: data.get(field, default) for field, default in self.defaults.items()}
        return {**{field: data[field] for field in self.without_default}, **values, **secrets}

    def stored(self) -> Mapping[str, Values]:
        return {getattr(row, self.resource.key): self.values_of(row) for row in self.resource.rows(self.project_id)}

    def values_of(self, row: Any) -> Values:
        return {field: getattr(row, field) for field in (*self.without_default, *self.defaults)}

    def create(self, name: str, values: Values) -> None:
        self.resource.create(self.project_id, {self.resource.key: name, **plain(values)}, actor=ACTOR)

    def change(self, name: str, values: Values, differences: Differences) -> None:
        self.resource.change(self.project_id, self._lookup(name), plain(without_kept(values)), actor=ACTOR)

    def delete(self, name: str) -> None:
        self.resource.remove(self.project_id, self._lookup(name), actor=ACTOR)

    def _lookup(self, name: str) -> Any:
        return getattr(self.resource.rows(self.project_id).get(**{self.resource.key: name}), self.resource.lookup)
