from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError as ModelValidationError
from rest_framework import serializers

from core.wire.serializers import BodySerializer, StrictSerializer
from gateway.project_settings.model_groups import Strategy
from gateway.tables.group import (
    MAX_MEMBERS,
    MAX_WEIGHT,
    MEMBER_CHARACTERS,
    NAME_CHARACTERS,
    validate_group_name,
    validate_members,
)

_STRATEGY = "ordered tries the models as they are listed; weighted draws the first in proportion to the weights."


class GroupMemberSerializer(StrictSerializer):
    model = serializers.CharField(max_length=MEMBER_CHARACTERS, help_text="A model, as a request names it.")
    weight = serializers.IntegerField(
        required=False,
        default=1,
        min_value=0,
        max_value=MAX_WEIGHT,
        help_text="The share of sessions that get this model first; 0 only as a fallback.",
    )


class GroupChangeSerializer(BodySerializer):
    """Strategy and members of a group, as a PUT replaces them. A group may be written back as it was read."""

    written_back = frozenset({"name", "created_at", "updated_at"})

    strategy = serializers.ChoiceField(choices=[one.value for one in Strategy], help_text=_STRATEGY)
    members = serializers.ListField(
        child=GroupMemberSerializer(), min_length=1, max_length=MAX_MEMBERS, help_text="Each model once, in order."
    )

    def validate_members(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _checked(validate_members, value)
        return value


class NewGroupSerializer(GroupChangeSerializer):
    written_back = frozenset({"created_at", "updated_at"})

    name = serializers.CharField(max_length=NAME_CHARACTERS, help_text="The name that requests send as model.")

    def validate_name(self, value: str) -> str:
        _checked(validate_group_name, value)
        return value


class ModelGroupSerializer(serializers.Serializer[Any]):
    """A group as it is answered."""

    name = serializers.CharField(read_only=True)
    strategy = serializers.ChoiceField(choices=[one.value for one in Strategy], read_only=True)
    members = GroupMemberSerializer(many=True, read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)


def _checked(validate: Any, value: Any) -> None:
    try:
        validate(value)
    except ModelValidationError as error:
        raise serializers.ValidationError(error.messages) from None
