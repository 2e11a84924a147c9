"""Query parameters: an empty one counts as absent, an unknown one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from core.errors import ValidationError
from core.wire.fields import TimeField

# Clients send these parameters to every call (docs/api.md#parameters).
ANYWHERE = frozenset({"project_id", "limit", "offset", "start_date", "end_date"})
_MAX_NAME_CHARACTERS = 100


class Parameters(serializers.Serializer[Any]):
    """The parameters of a query. Forms and clients send empty ones for filters that were not filled in."""

    def to_internal_value(self, data: Any) -> Any:
        given = {name: value for name, value in data.items() if value != ""} if isinstance(data, Mapping) else data
        return super().to_internal_value(given)


class RangeParameters(Parameters):
    start_date = TimeField(required=False)
    end_date = TimeField(required=False, end_of_day=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        start, end = attrs.get("start_date"), attrs.get("end_date")
        if start and end and start > end:
            raise serializers.ValidationError({"end_date": "Must not be before start_date."})
        return attrs


def check_parameters(request: Request, known: frozenset[str]) -> None:
    """Raises ValidationError for an unknown parameter: a misspelt filter would filter nothing."""
    unknown = sorted(set(request.query_params) - known - ANYWHERE)
    if unknown:
        there_are = ", ".join(sorted(known | {"project_id"}))
        problem = f"There is no such parameter. There are: {there_are}."
        name = unknown[0][:_MAX_NAME_CHARACTERS]
        raise ValidationError(
            f"{name}: {problem}", details={name[:_MAX_NAME_CHARACTERS]: [problem] for name in unknown[:20]}
        )
