"""Query parameters: an empty one counts as left out, and an unknown one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from core.errors import ValidationError

# Clients send these parameters to every call (docs/api.md#parameters).
ANYWHERE = frozenset({"project_id", "limit", "offset", "start_date", "end_date"})
_MAX_NAME_CHARACTERS = 100


class Parameters(serializers.Serializer[Any]):
    """The parameters of a query. Forms and clients send empty ones for filters that were not filled in."""

    def to_internal_value(self, data: Any) -> Any:
        given = {name: value for name, value in data.items() if value != ""} if isinstance(data, Mapping) else data
        return super().to_internal_value(given)


def check_parameters(request: Request, known: frozenset[str]) -> None:
    """Raises ValidationError for a parameter that the call does not have: a misspelt filter would filter nothing."""
    unknown = sorted(set(request.query_params) - known - ANYWHERE)
    if unknown:
        there_are = ", ".join(sorted(known | {"project_id"}))
        problem = f"There is no such parameter. There are: {there_are}."
        name = unknown[0][:_MAX_NAME_CHARACTERS]
        raise ValidationError(
            f"{name}: {problem}", details={name[:_MAX_NAME_CHARACTERS]: [problem] for name in unknown[:20]}
        )
