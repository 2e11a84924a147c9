"""The settings of a project's gateway, the history of their changes, and the tables of alerts."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, URLValidator, validate_email
from django.db import models
from typing_extensions import override

from core.caller_limits import MAX_BUDGET_USD, MAX_CONCURRENT_REQUESTS, MAX_PER_MINUTE
from core.models import Project
from core.tenancy import ProjectManager
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.project_settings.settings import DEFAULT_RETENTION_DAYS
from gateway.tables.alert import AlertDelivery as AlertDelivery  # Django looks for models in this module
from gateway.tables.alert import AlertSecret as AlertSecret
from gateway.tables.alert import BudgetAlert as BudgetAlert
from gateway.tables.alert import OperatorAlert as OperatorAlert
from gateway.tables.end_user import EndUserLimit as EndUserLimit
from gateway.tables.group import ModelGroupRow as ModelGroupRow
from gateway.tables.trial import Trial as Trial
from gateway.tables.trial import TrialAnswer as TrialAnswer
from gateway.tables.trial import TrialInput as TrialInput

MAX_TRIES = 10
MAX_NAMES = 50
MODEL_CHARACTERS = 200
MAX_TEXT_CHARACTERS = 200
MAX_THINKING_TOKENS = 1_000_000
MAX_PROMPT_TOKENS = 100_000_000
MAX_CACHE_SECONDS = 30 * 86_400
MAX_RETENTION_DAYS = 3650
AGENT_SCOPES = ("project:read", "llm:read", "observability:read", "billing:read")


def validate_names(value: Any) -> None:
    if not isinstance(value, list) or any(not isinstance(name, str) or not name.strip() for name in value):
        raise ValidationError("Expected a list of names.", code="not_names")
    if any("\x00" in name for name in value):
        raise ValidationError("Null characters are not allowed.", code="null_characters_not_allowed")
    if len(value) > MAX_NAMES:
        raise ValidationError(f"At most {MAX_NAMES} names are allowed.", code="too_many")
    if len(set(value)) != len(value):
        raise ValidationError("A name stands there twice.", code="repeated")
    if any(len(name) > MODEL_CHARACTERS for name in value):
        raise ValidationError(f"A name has at most {MODEL_CHARACTERS} characters.", code="too_long")


def validate_providers(value: Any) -> None:
    """Raises ValidationError for what cannot be names of providers or of deployments. Which deployments there are
    depends on the project (`services.check_fallback_order`)."""
    validate_names(value)


def validate_scopes(value: Any) -> None:
    validate_names(value)
    unknown = [name for name in value if name not in AGENT_SCOPES]
    if unknown:
        raise ValidationError(f"Unknown scope: {unknown[0]}. Known are {', '.join(AGENT_SCOPES)}.", code="unknown")


def validate_emails(value: Any) -> None:
    validate_names(value)
    for address in value:
        validate_email(address)


def delimiters_problem(delimiters: Iterable[str]) -> str:
    """Returns what is wrong with `document_delimiters`, empty if nothing is."""
    pairs = map(str.split, delimiters)
    is_right = all(len(words) == 2 and words[0] != words[1] for words in pairs)
    return "" if is_right else "Each has two different words with a blank between, such as <document> </document>."


def validate_guardrails(value: Any) -> None:
    """Validates the whole object or a part of it; omitted fields have their defaults."""
    try:
        found = msgspec.convert(value, GuardrailSettings)
    except msgspec.ValidationError as error:
        raise ValidationError(str(error), code="invalid") from None
    for name in ("blocked_input_topics", "blocked_output_topics", "blocked_tools", "document_delimiters"):
        try:
            validate_names(list(getattr(found, name)))
        except ValidationError as error:
            raise ValidationError(f"{name}: {error.messages[0]}", code=error.code) from None
    if problem := delimiters_problem(found.document_delimiters):
        raise ValidationError(f"document_delimiters: {problem}", code="invalid")
    if found.max_prompt_tokens is not None and not 1 <= found.max_prompt_tokens <= MAX_PROMPT_TOKENS:
        raise ValidationError(f"max_prompt_tokens: From 1 to {MAX_PROMPT_TOKENS}.", code="range")
    if found.min_quality_score is not None and not 0 <= found.min_quality_score <= 100:
        raise ValidationError("min_quality_score: From 0 to 100.", code="range")


def all_scopes() -> list[str]:
    return list(AGENT_SCOPES)


def no_guardrails() -> dict[str, Any]:
    return {"trust_mode": TrustMode.OFF.value}


_BUDGET = [MinValueValidator(Decimal(0)), MaxValueValidator(Decimal(MAX_BUDGET_USD))]


class GatewaySettings(models.Model):
    """The gateway settings of one project; a project without a row has the defaults (docs/settings.md)."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="gateway_settings")
    retry_enabled = models.BooleanField(default=True)
    retry_max_attempts = models.PositiveSmallIntegerField(
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_TRIES)],
        help_text="How often one provider may be asked for one request, the first time included.",
    )
    fallback_enabled = models.BooleanField(
        default=True, help_text="Whether another provider may answer when the first cannot."
    )
    fallback_order = models.JSONField(
        default=list, blank=True, validators=[validate_providers], help_text="Providers in the order to fall back to."
    )
    preferred_models = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_names],
        help_text="What model auto stands for, best first; also which model to ask at a provider fallen back to.",
    )
    introspection_enabled = models.BooleanField(
        default=False,
        help_text="Whether models are asked for their reasoning when a request says nothing.",
    )
    thinking_budget_tokens = models.PositiveIntegerField(
        default=0,
        validators=[MaxValueValidator(MAX_THINKING_TOKENS)],
        help_text="Tokens of reasoning to ask for; 0 leaves it to the model.",
    )
    rate_limit_enabled = models.BooleanField(default=False)
    rate_limit_rpm = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_PER_MINUTE)]
    )
    rate_limit_tpm = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_PER_MINUTE)]
    )
    monthly_budget_usd = models.DecimalField(
        null=True,
        blank=True,
        max_digits=20,
        decimal_places=10,
        validators=_BUDGET,
        help_text="Per calendar month, UTC.",
    )
    budget_alert_enabled = models.BooleanField(default=False, help_text="Tells at 50, 80 and 100 percent.")
    budget_hard_stop = models.BooleanField(
        default=False, help_text="Whether requests are refused once the month's budget is used up."
    )
    session_budget_usd = models.DecimalField(
        null=True, blank=True, max_digits=20, decimal_places=10, validators=_BUDGET
    )
    end_user_monthly_budget_usd = models.DecimalField(
        null=True, blank=True, max_digits=20, decimal_places=10, validators=_BUDGET
    )
    end_user_rpm = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_PER_MINUTE)]
    )
    end_user_tpm = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_PER_MINUTE)]
    )
    end_user_max_concurrent = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_CONCURRENT_REQUESTS)]
    )
    guardrails = models.JSONField(default=no_guardrails, blank=True, validators=[validate_guardrails])
    agent_enabled = models.BooleanField(default=True)
    agent_scopes = models.JSONField(default=all_scopes, blank=True, validators=[validate_scopes])
    agent_model = models.CharField(max_length=MODEL_CHARACTERS, blank=True, default="")
    judge_model = models.CharField(max_length=MODEL_CHARACTERS, blank=True, default="")
    cache_ttl_seconds = models.PositiveIntegerField(
        default=0,
        validators=[MaxValueValidator(MAX_CACHE_SECONDS)],
        help_text="For how long an answer is given again to the same request; 0: only where one asks for it.",
    )
    prompt_cache_markers = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether requests get the markers that a provider's prompt cache needs.",
    )
    log_content = models.BooleanField(default=True, help_text="Whether the texts of requests and answers are kept.")
    retention_days = models.PositiveIntegerField(
        default=DEFAULT_RETENTION_DAYS,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_RETENTION_DAYS)],
        help_text="How long anything about a request is kept, from its arrival on.",
    )
    alert_webhook_url = models.CharField(
        max_length=2000, blank=True, default="", validators=[URLValidator(schemes=["http", "https"])]
    )
    alert_emails = models.JSONField(default=list, blank=True, validators=[validate_emails])
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["project_id"]
        verbose_name = verbose_name_plural = "gateway settings"

    @override
    def __str__(self) -> str:
        return f"Gateway settings of {self.project_id}"

    @override
    def clean(self) -> None:
        # Forms turn an emptied field into None.
        self.fallback_order = self.fallback_order or []
        self.preferred_models = self.preferred_models or []
        self.agent_scopes = self.agent_scopes or []
        self.alert_emails = self.alert_emails or []
        self.guardrails = self.guardrails or no_guardrails()


class SettingsChange(models.Model):
    """One change of a project's settings: `changes` holds [before, after] by field."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="settings_changes")
    actor = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changes = models.JSONField()

    objects = ProjectManager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["project", "-id"], name="settings_changes_of_project")]
        verbose_name = "change of settings"
        verbose_name_plural = "changes of settings"

    @override
    def __str__(self) -> str:
        return f"{', '.join(self.changes)} by {self.actor}"


class Playground(models.Model):
    """The playground's page in the admin's list. There is no such table: the console shows the page."""

    class Meta:
        managed = False
        default_permissions = ()
        verbose_name = "playground"
        verbose_name_plural = "playground"

    @override
    def __str__(self) -> str:
        return "playground"
