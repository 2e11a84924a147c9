"""The section `model_groups` (docs/model-groups.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.configuration.problems import Path
from gateway.configuration.sections.base import ACTOR, Differences, EntriesSection, Values, checked
from gateway.model_groups.serializers import NewGroupSerializer
from gateway.model_groups.services import change_group, create_group, delete_group, list_groups


class ModelGroupsSection(EntriesSection):
    name = "model_groups"
    without_default = ("strategy", "members")

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        data = checked(NewGroupSerializer, {**given, "name": name}, path)
        return {"strategy": data["strategy"], "members": [dict(member) for member in data["members"]]}

    def stored(self) -> Mapping[str, Values]:
        return {
            row.name: {"strategy": row.strategy, "members": [dict(member) for member in row.members]}
            for row in list_groups(self.project_id)
        }

    def create(self, name: str, values: Values) -> None:
        create_group(project_id=self.project_id, name=name, actor=ACTOR, **values)

    def change(self, name: str, values: Values, differences: Differences) -> None:
        change_group(project_id=self.project_id, name=name, actor=ACTOR, **values)

    def delete(self, name: str) -> None:
        delete_group(project_id=self.project_id, name=name, actor=ACTOR)
