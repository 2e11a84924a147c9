from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from core.errors import ValidationError
from core.resources.declaration import Resource
from gateway.models import ModelGroupRow


class ModelGroups(Resource[ModelGroupRow]):
    model = ModelGroupRow
    lookup = "name"
    maximum = 200
    missing = ("model_group_not_found", "The project has no model group {key!r}.")
    taken = ("model_group_exists", "The project has a model group {key!r} already.")
    full = ("too_many_model_groups", "A project has at most {maximum} model groups.")
    logged = (logging.getLogger("gateway.model_groups"), "model_group", "name")

    def fill(self, row: ModelGroupRow, values: Mapping[str, Any]) -> None:
        """A group may not contain a group, whichever of the two is new."""
        super().fill(row, values)
        others = list(self.rows(row.project_id).exclude(pk=row.pk))
        holders = [other.name for other in others if any(member["model"] == row.name for member in other.members)]
        if holders:
            problem = f"{holders[0]} has a member of this name, and a group may not contain a group."
            raise ValidationError.of_field("name", problem)
        names = {row.name, *(other.name for other in others)}
        inner = [member["model"] for member in row.members if member["model"] in names]
        if inner:
            problem = f"{inner[0]} is a model group, and a group may not contain a group."
            raise ValidationError.of_field("members", problem)


MODEL_GROUPS = ModelGroups()
