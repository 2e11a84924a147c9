"""Wire shapes of core's endpoints."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from typing_extensions import override

from core.keys import SCOPES
from core.models import NAME_CHARACTERS, ApiKey, Membership
from core.rights.roles import Role


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    class Meta:
        model = ApiKey
        fields = ["id", "name", "prefix", "scopes", "expires_at", "revoked_at", "last_used_at", "created_at"]
        read_only_fields = fields


class IssuedApiKeySerializer(ApiKeySerializer):
    """With the key, which is told this once."""

    key = serializers.CharField(read_only=True)

    class Meta(ApiKeySerializer.Meta):
        fields = [*ApiKeySerializer.Meta.fields, "key"]
        read_only_fields = fields


class NewApiKeySerializer(serializers.Serializer[ApiKey]):
    name = serializers.CharField(max_length=NAME_CHARACTERS)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES), allow_empty=False)
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class RoleField(serializers.ChoiceField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=Role.choices, **kwargs)

    @override
    def to_internal_value(self, data: Any) -> Role:
        return Role(super().to_internal_value(data))


class MemberSerializer(serializers.ModelSerializer[Membership]):
    username = serializers.CharField(source="user.username", read_only=True)

    class Meta:
        model = Membership
        fields = ["id", "username", "role", "created_by", "created_at"]
        read_only_fields = fields


class NewMemberSerializer(serializers.Serializer[Membership]):
    username = serializers.CharField(max_length=150)
    role = RoleField()


class MemberRoleSerializer(serializers.Serializer[Membership]):
    role = RoleField()
