from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.keys.serializers import MAX_ID
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer, RowSerializer
from gateway.models import GatewaySettings, SettingsChange
from gateway.project_settings.api_fields import GuardrailsSerializer, api_fields
from gateway.project_settings.settings import ProjectSettings
from gateway.project_settings.values import as_wire
from gateway.reports.dry_run import DEFAULT_DAYS, DEFAULT_INPUTS, MAX_DAYS, MAX_INPUTS
from gateway.reports.settings_warnings import WARNING_CODES, settings_warnings


class DryRunSerializer(BodySerializer):
    """The guardrails to try, by default those of the settings, and how much of the past to look at."""

    guardrails = GuardrailsSerializer(required=False, help_text="The guardrails to try; without them the present ones.")
    days = serializers.IntegerField(required=False, default=DEFAULT_DAYS, min_value=1, max_value=MAX_DAYS)
    max_inputs = serializers.IntegerField(required=False, default=DEFAULT_INPUTS, min_value=1, max_value=MAX_INPUTS)


class SettingsWarningSerializer(serializers.Serializer[Any]):
    field = serializers.CharField(help_text="The path of the setting.")
    code = serializers.ChoiceField(choices=WARNING_CODES, help_text="Stays, whatever becomes of the message.")
    message = serializers.CharField()


class SettingsSerializer(BodySerializer):
    """The body of the settings. A PUT replaces the whole object: an omitted field gets its default."""

    warnings = serializers.SerializerMethodField(
        help_text="Settings that do nothing as they are, and why; PUT takes no notice of it.",
    )

    @extend_schema_field(SettingsWarningSerializer(many=True))
    def get_warnings(self, row: GatewaySettings) -> list[dict[str, str]]:
        return [
            {"field": warning.field, "code": warning.code, "message": warning.message}
            for warning in settings_warnings(row)
        ]

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        warnings = fields.pop("warnings")
        return {**fields, **api_fields(ProjectSettings), "warnings": warnings}


def settings_body(row: GatewaySettings) -> dict[str, Any]:
    return {**as_wire(row.settings), "warnings": SettingsSerializer().get_warnings(row)}


class SettingsChangeSerializer(RowSerializer[SettingsChange]):
    class Meta:
        model = SettingsChange
        fields = ["id", "actor", "created_at", "changes"]


class UsageParameters(Parameters):
    session_id = serializers.CharField(
        required=False, default="", allow_blank=True, trim_whitespace=False, max_length=1024
    )
    key_id = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=MAX_ID)
    team_id = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=MAX_ID)
    user_id = serializers.CharField(
        required=False, default="", allow_blank=True, trim_whitespace=False, max_length=1024
    )
