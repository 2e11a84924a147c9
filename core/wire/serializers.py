from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django.db.models import Model
from rest_framework import serializers

from core.wire.strict import Problem, wrong_type

Row = TypeVar("Row", bound=Model)

_MAX_UNKNOWN_FIELDS, _MAX_NAME_CHARACTERS = 20, 100


class StrictSerializer(serializers.Serializer[Any]):
    """An object of a JSON body, which refuses unknown fields and values of another type than the field's, by name."""

    # Fields of answers that are ignored in bodies, so that an object can be written back as it was read.
    written_back: ClassVar[frozenset[str]] = frozenset()

    def to_internal_value(self, data: Any) -> Any:
        problems = self._problems(data) if isinstance(data, Mapping) else {}
        if not problems:
            return super().to_internal_value(data)
        try:
            super().to_internal_value({name: value for name, value in data.items() if name not in problems})
        except serializers.ValidationError as error:
            others = error.detail if isinstance(error.detail, dict) else {}
            raise serializers.ValidationError({**others, **problems}) from None
        raise serializers.ValidationError(problems)

    def _problems(self, data: Mapping[str, Any]) -> dict[str, Problem]:
        fields = self.fields
        known = {name: value for name, value in data.items() if name in fields and not fields[name].read_only}
        wrong = {name: wrong_type(fields[name], value) for name, value in known.items()}
        unknown = sorted(set(data) - set(fields) - self.written_back)[:_MAX_UNKNOWN_FIELDS]
        return {
            **{name: problem for name, problem in wrong.items() if problem},
            **{name[:_MAX_NAME_CHARACTERS]: ["There is no such field."] for name in unknown},
        }


class BodySerializer(StrictSerializer):
    """A whole JSON body. Any body may name its project, which the view compares with the header."""

    # A POST without required fields takes an empty body as `{}`, unless its fields are what the call is about.
    is_needed: ClassVar[bool] = False

    project_id = serializers.UUIDField(
        required=False, allow_null=True, write_only=True, help_text="The project; the one of X-Project-Id."
    )

    def to_internal_value(self, data: Any) -> Any:
        found = super().to_internal_value(data)
        if not self.fields["project_id"].required:
            found.pop("project_id", None)
        return found


class RowSerializer(serializers.ModelSerializer[Row]):
    """A row as answers show it: every field is read-only."""

    def get_extra_kwargs(self) -> dict[str, dict[str, Any]]:
        return {name: {"read_only": True} for name in self.Meta.fields}


class EmptyBodySerializer(BodySerializer):
    """The body of a call that takes no fields."""
