"""Wire shapes of core's endpoints."""

from __future__ import annotations

from rest_framework import serializers

from core.keys import SCOPES
from core.models import NAME_CHARACTERS, ApiKey


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
