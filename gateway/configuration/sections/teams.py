"""The section `teams`: their limits (docs/limits.md#limits-of-teams). People have accounts, which are no part of the
file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.keys.services import LIMIT_FIELDS
from core.models import Team
from core.teams.serializers import NewTeamSerializer
from core.teams.services import change_team, create_team, delete_team, list_teams
from gateway.configuration.problems import Path
from gateway.configuration.sections.base import Differences, EntriesSection, Values, checked


class TeamsSection(EntriesSection):
    name = "teams"
    defaults = dict.fromkeys(LIMIT_FIELDS)

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        data = checked(NewTeamSerializer, {**given, "name": name}, path)
        return {field: data.get(field) for field in LIMIT_FIELDS}

    def stored(self) -> Mapping[str, Values]:
        return {row.name: {field: getattr(row, field) for field in LIMIT_FIELDS} for row in list_teams(self.project_id)}

    def create(self, name: str, values: Values) -> None:
        create_team(self.project_id, {"name": name, **values})

    def change(self, name: str, values: Values, differences: Differences) -> None:
        change_team(self.project_id, self._id(name), values)

    def delete(self, name: str) -> None:
        delete_team(self.project_id, self._id(name))

    def _id(self, name: str) -> int:
        return Team.objects.for_project(self.project_id).values_list("pk", flat=True).get(name=name)
