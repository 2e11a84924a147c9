"""Wire shapes of the gateway's part of the management API (docs/settings.md)."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError as ModelValidationError
from django.core.validators import URLValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.caller_limits import MAX_BUDGET_USD, MAX_CONCURRENT_REQUESTS, MAX_PER_MINUTE
from core.wire.fields import MoneyField, NameListField, NumberField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer, StrictSerializer
from gateway.models import (
    AGENT_SCOPES,
    MAX_CACHE_SECONDS,
    MAX_NAMES,
    MAX_PROMPT_TOKENS,
    MAX_RETENTION_DAYS,
    MAX_THINKING_TOKENS,
    MAX_TRIES,
    MODEL_CHARACTERS,
    GatewaySettings,
    SettingsChange,
    delimiters_problem,
    validate_providers,
)
from gateway.project_settings.guardrails import TrustMode
from gateway.project_settings.settings import DEFAULT_RETENTION_DAYS
from gateway.reports.dry_run import DEFAULT_DAYS, DEFAULT_INPUTS, MAX_DAYS, MAX_INPUTS
from gateway.reports.settings_warnings import WARNING_CODES, settings_warnings
from gateway.services import whole_guardrails


def _providers(value: Any) -> None:
    try:
        validate_providers(value)
    except ModelValidationError as error:
        raise serializers.ValidationError(error.messages) from None


def _model(help_text: str) -> serializers.CharField:
    return serializers.CharField(
        required=False, default="", allow_blank=True, max_length=MODEL_CHARACTERS, help_text=help_text
    )


def _names(help_text: str, **options: Any) -> NameListField:
    return NameListField(required=False, default=list, max_length=MAX_NAMES, help_text=help_text, **options)


def _limit(help_text: str, maximum: int = MAX_PER_MINUTE) -> serializers.IntegerField:
    """Returns the field of a limit that null switches off."""
    return serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=maximum, help_text=help_text
    )


def _switch(help_text: str, *, default: bool = False) -> serializers.BooleanField:
    return serializers.BooleanField(required=False, default=default, help_text=help_text)


class GuardrailsSerializer(StrictSerializer):
    trust_mode = serializers.ChoiceField(
        choices=[mode.value for mode in TrustMode],
        required=False,
        default=TrustMode.OFF.value,
        help_text="Whether guardrails are idle, only record what they find, or act on it.",
    )
    blocked_input_topics = _names("Phrases that a request may not hold.")
    blocked_output_topics = _names("Phrases that an answer may not hold.")
    max_prompt_tokens = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        max_value=MAX_PROMPT_TOKENS,
        help_text="The longest prompt, in estimated tokens; null for any.",
    )
    pii_block_on_detect = _switch("Refuses requests that hold personal data.")
    prompt_injection_detection = _switch("Refuses requests that try to take the model over.")
    spotlighting_enabled = _switch("Marks what tools and documents say as data.")
    document_delimiters = _names("The words that a document in a message begins and ends with, a blank between.")
    mask_output_pii = _switch("Replaces personal data in answers by its kind.")
    min_quality_score = NumberField(
        required=False,
        default=None,
        allow_null=True,
        min_value=0,
        max_value=100,
        help_text="What judge_model has to give an answer at least; null for any answer.",
    )
    blocked_tools = _names("Tools that may be neither offered nor called.")
    block_exfiltration_urls = _switch("Takes links out of answers that carry the conversation to somewhere else.")

    def validate_document_delimiters(self, value: list[str]) -> list[str]:
        if problem := delimiters_problem(value):
            raise serializers.ValidationError(problem)
        return value


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

    introspection_enabled = _switch("Asks models for their reasoning where a request says nothing about it.")
    thinking_budget_tokens = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_THINKING_TOKENS,
        help_text="Tokens of reasoning to ask for; 0 leaves it to the model.",
    )
    fallback_enabled = _switch("Whether another provider may answer when the first cannot.", default=True)
    fallback_order = _names("Providers in the order to fall back to.", validators=[_providers])
    preferred_models = _names("What model `auto` stands for, best first.")
    retry_enabled = _switch("Whether a provider is asked again after a failure that may pass.", default=True)
    retry_max_attempts = serializers.IntegerField(
        required=False,
        default=2,
        min_value=1,
        max_value=MAX_TRIES,
        help_text="How often one provider may be asked for one request, the first time included.",
    )
    rate_limit_enabled = _switch("Whether the two limits per minute hold.")
    rate_limit_rpm = _limit("Requests per minute; null for any number.")
    rate_limit_tpm = _limit("Tokens per minute; null for any number.")
    monthly_budget_usd = MoneyField(
        required=False, default=None, allow_null=True, max_value=MAX_BUDGET_USD, help_text="Per calendar month, UTC."
    )
    budget_alert_enabled = _switch("Tells at 50, 80 and 100 percent of the month's budget.")
    budget_hard_stop = _switch("Refuses requests once the month's budget is used up.")
    session_budget_usd = MoneyField(
        required=False, default=None, allow_null=True, max_value=MAX_BUDGET_USD, help_text="Per x-svc-session-id."
    )
    end_user_monthly_budget_usd = MoneyField(
        required=False,
        default=None,
        allow_null=True,
        max_value=MAX_BUDGET_USD,
        help_text="Of every end user, per calendar month, UTC.",
    )
    end_user_rpm = _limit("Requests per minute of every end user; null for any number.")
    end_user_tpm = _limit("Tokens per minute of every end user; null for any number.")
    end_user_max_concurrent = _limit(
        "Requests of every end user at the same time; null for any number.", MAX_CONCURRENT_REQUESTS
    )
    guardrails = GuardrailsSerializer(required=False, default=dict, help_text="What requests and answers may hold.")
    cache_ttl_seconds = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_CACHE_SECONDS,
        help_text="For how long an answer is given again to the same request; 0: only where one asks for it.",
    )
    prompt_cache_markers = _switch("Adds the markers that a provider's prompt cache needs.")
    log_content = _switch("Whether the texts of requests and answers are kept.", default=True)
    retention_days = serializers.IntegerField(
        required=False,
        default=DEFAULT_RETENTION_DAYS,
        min_value=1,
        max_value=MAX_RETENTION_DAYS,
        help_text="How long anything about a request is kept, from its arrival on.",
    )
    judge_model = _model("The model that scores answers; empty for none.")
    agent_enabled = _switch("Whether the in-app agent answers.", default=True)
    agent_scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=list(AGENT_SCOPES)),
        required=False,
        default=lambda: list(AGENT_SCOPES),
        max_length=len(AGENT_SCOPES),
        help_text="What the in-app agent may read.",
    )
    agent_model = _model("The model behind the in-app agent; empty: the first preferred one.")
    alert_webhook_url = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=2000,
        validators=[URLValidator(schemes=["http", "https"])],
        help_text="Where alerts are posted to.",
    )
    alert_emails = serializers.ListField(
        child=serializers.EmailField(max_length=254),
        required=False,
        default=list,
        max_length=MAX_NAMES,
        help_text="Who is written to about alerts.",
    )

    warnings = serializers.SerializerMethodField(
        help_text="Settings that do nothing as they are, and why; PUT takes no notice of it."
    )

    @extend_schema_field(SettingsWarningSerializer(many=True))
    def get_warnings(self, row: GatewaySettings) -> list[dict[str, str]]:
        return [warning._asdict() for warning in settings_warnings(row)]

    def validate_guardrails(self, value: dict[str, Any]) -> dict[str, Any]:
        # DRF does not fill in nested defaults.
        nested = GuardrailsSerializer(data=value)
        nested.is_valid(raise_exception=True)
        return dict(nested.validated_data)

    def validate_agent_scopes(self, value: list[str]) -> list[str]:
        if len(set(value)) != len(value):
            raise serializers.ValidationError("A scope stands there twice.")
        return value


def settings_body(row: GatewaySettings) -> dict[str, Any]:
    """Returns the whole object, also for a row that was never saved."""
    return {**SettingsSerializer(row).data, "guardrails": whole_guardrails(row.guardrails)}


class SettingsChangeSerializer(serializers.ModelSerializer[SettingsChange]):
    class Meta:
        model = SettingsChange
        fields = ["id", "actor", "created_at", "changes"]
        read_only_fields = fields


class UsageParameters(Parameters):
    session_id = serializers.CharField(
        required=False, default="", allow_blank=True, trim_whitespace=False, max_length=1024
    )
    key_id = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=2**63 - 1)
    user_id = serializers.CharField(
        required=False, default="", allow_blank=True, trim_whitespace=False, max_length=1024
    )
