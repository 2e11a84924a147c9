"""The section `end_users`: the limits of end users by name (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.configuration.problems import Path
from gateway.configuration.sections.base import Differences, EntriesSection, Values, checked
from gateway.end_users.serializers import NewEndUserLimitSerializer
from gateway.end_users.services import change_limit, create_limit, list_limits
from gateway.tables.end_user import EndUserLimit


class EndUsersSection(EntriesSection):
    name = "end_users"
    defaults = dict.fromkeys(("monthly_budget_usd", "rate_limit_rpm", "rate_limit_tpm", "max_concurrent_requests"))

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        data = checked(NewEndUserLimitSerializer, {**given, "user_id": name}, path)
        return {field: data.get(field) for field in self.defaults}

    def stored(self) -> Mapping[str, Values]:
        rows = list_limits(self.project_id)
        return {row.user_id: {field: getattr(row, field) for field in self.defaults} for row in rows}

    def create(self, name: str, values: Values) -> None:
        create_limit(self.project_id, {"user_id": name, **values})

    def change(self, name: str, values: Values, differences: Differences) -> None:
        change_limit(self._row(name), values)

    def delete(self, name: str) -> None:
        self._row(name).delete()

    def _row(self, name: str) -> EndUserLimit:
        return list_limits(self.project_id).get(user_id=name)
