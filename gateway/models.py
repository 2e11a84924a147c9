"""What a project has set about its gateway."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from typing_extensions import override

from core.models import Project
from core.tenancy import ProjectManager
from integrations.registry import is_known

MAX_TRIES = 10
MAX_NAMES = 50
MODEL_CHARACTERS = 200


def validate_names(value: Any) -> None:
    if not isinstance(value, list) or any(not isinstance(name, str) or not name.strip() for name in value):
        raise ValidationError("Expected a list of names.", code="not_names")
    if len(value) > MAX_NAMES:
        raise ValidationError(f"At most {MAX_NAMES} names are allowed.", code="too_many")
    if len(set(value)) != len(value):
        raise ValidationError("A name stands there twice.", code="repeated")
    if any(len(name) > MODEL_CHARACTERS for name in value):
        raise ValidationError(f"A name has at most {MODEL_CHARACTERS} characters.", code="too_long")


def validate_providers(value: Any) -> None:
    validate_names(value)
    unknown = [name for name in value if not is_known(name)]
    if unknown:
        raise ValidationError(f"Unknown provider: {unknown[0]}.", code="unknown_provider")


class GatewaySettings(models.Model):
    """One row a project; without one the defaults hold (specification, Gateway settings; design, section 5)."""

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
        # What a form makes of an emptied field.
        self.fallback_order = self.fallback_order or []
        self.preferred_models = self.preferred_models or []
