from __future__ import annotations

import re
from typing import Any

from rest_framework import serializers

from core.caller_limits import MAX_BUDGET_USD, MAX_CONCURRENT_REQUESTS, MAX_PER_MINUTE
from core.keys.patterns import MAX_PATTERNS
from core.keys.services import CHANGEABLE_FIELDS
from core.models import NAME_CHARACTERS, ApiKey
from core.rights.scopes import DESCRIPTIONS, SCOPES
from core.wire.fields import MoneyField, NameListField
from core.wire.serializers import BodySerializer, RowSerializer

MAX_GRACE_SECONDS = 30 * 86_400
MAX_ID = 2**63 - 1
_DEFAULT_GRACE_SECONDS = 86_400
MAX_METADATA, METADATA_NAME_CHARACTERS, METADATA_CHARACTERS = 16, 64, 512
_METADATA_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def budget_field(help_text: str) -> MoneyField:
    return MoneyField(
        required=False, allow_null=True, max_value=MAX_BUDGET_USD, help_text=f"{help_text} null for none."
    )


def count_field(help_text: str, maximum: int = MAX_PER_MINUTE) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=maximum,
        help_text=f"{help_text} null for any number.",
    )  # fmt: skip


def _patterns(help_text: str) -> NameListField:
    return NameListField(required=False, max_length=MAX_PATTERNS, help_text=help_text)


class MetadataField(serializers.DictField):
    child = serializers.CharField(max_length=METADATA_CHARACTERS, allow_blank=True, trim_whitespace=False)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if isinstance(data, dict):
            if len(data) > MAX_METADATA:
                raise serializers.ValidationError(f"At most {MAX_METADATA} entries.")
            for name in data:
                if len(name) > METADATA_NAME_CHARACTERS or not _METADATA_NAME.fullmatch(name):
                    raise serializers.ValidationError(
                        f"A name has 1 to {METADATA_NAME_CHARACTERS} letters, digits, dots, hyphens and underscores."
                    )
        found: dict[str, str] = super().to_internal_value(data)
        return found


class ApiKeySerializer(RowSerializer[ApiKey]):
    monthly_budget_usd = MoneyField(read_only=True, max_value=MAX_BUDGET_USD, allow_null=True)
    total_budget_usd = MoneyField(read_only=True, max_value=MAX_BUDGET_USD, allow_null=True)
    allowed_models = serializers.ListField(child=serializers.CharField(), read_only=True)
    allowed_providers = serializers.ListField(child=serializers.CharField(), read_only=True)
    metadata = serializers.DictField(child=serializers.CharField(), read_only=True)
    team_id = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = ApiKey
        fields = [
            "id", "name", "prefix", "scopes", "expires_at", "revoked_at", "last_used_at", "created_at",
            "previous_expires_at", "monthly_budget_usd", "total_budget_usd", "rate_limit_rpm", "rate_limit_tpm",
            "max_concurrent_requests", "allowed_models", "allowed_providers", "metadata", "team_id",
        ]  # fmt: skip


class IssuedApiKeySerializer(ApiKeySerializer):
    """An API key together with its plain text, which is shown only here."""

    key = serializers.CharField(read_only=True)

    class Meta(ApiKeySerializer.Meta):
        fields = [*ApiKeySerializer.Meta.fields, "key"]


class _KeyLimitsSerializer(BodySerializer):
    # There is no default, so that a change that omits the expiry keeps it.
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    monthly_budget_usd = budget_field("Per calendar month, UTC;")
    total_budget_usd = budget_field("For as long as the key exists;")
    rate_limit_rpm = count_field("Requests per minute;")
    rate_limit_tpm = count_field("Tokens per minute;")
    max_concurrent_requests = count_field("Requests at the same time;", MAX_CONCURRENT_REQUESTS)
    allowed_models = _patterns("Patterns of the models that the key may call, such as `gpt-*`; empty for all.")
    allowed_providers = _patterns(
        "Patterns of the providers that the key may call, such as `openai` or `g*`, whole names of integrations, or"
        " patterns of both as `openai/*-eu`; empty for all."
    )
    metadata = MetadataField(required=False, help_text="Recorded with each request of the key.")
    team_id = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MAX_ID, help_text="The team of the key; null for none."
    )


class NewApiKeySerializer(_KeyLimitsSerializer):
    name = serializers.CharField(max_length=NAME_CHARACTERS)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=SCOPES),
        allow_empty=False,
        min_length=1,
        help_text=" ".join(f"`{scope}`: {sentence}" for scope, sentence in DESCRIPTIONS.items()),
    )


class ApiKeyChangeSerializer(_KeyLimitsSerializer):
    """The columns to change; an omitted one stays as it is."""

    written_back = frozenset(ApiKeySerializer.Meta.fields) - frozenset(CHANGEABLE_FIELDS)

    name = serializers.CharField(required=False, max_length=NAME_CHARACTERS)


class RotationSerializer(BodySerializer):
    grace_seconds = serializers.IntegerField(
        required=False,
        default=_DEFAULT_GRACE_SECONDS,
        min_value=0,
        max_value=MAX_GRACE_SECONDS,
        help_text="The seconds for which the present secret goes on; 0 ends it at once.",
    )
