"""Access to providers, and what their tokens cost."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from typing_extensions import override

from core.models import Project
from core.tenancy import ProjectManager
from integrations import registry


def validate_provider(provider: str) -> None:
    """A plain string checked against the registry: as `choices`, every new provider would be a migration."""
    if not registry.is_known(provider):
        raise ValidationError("Unknown provider.", code="unknown_provider")


class ProviderIntegration(models.Model):
    """One project's access to one provider. Secrets are stored encrypted and only their tail is ever shown."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="integrations")
    provider = models.CharField(max_length=50, validators=[validate_provider])
    # Tokens of core.crypto: the API key, and a JSON object of what some kinds need beside or instead of it.
    encrypted_secret = models.TextField(blank=True, default="", editable=False)
    encrypted_extra = models.TextField(blank=True, default="", editable=False)
    secret_tail = models.CharField(max_length=4, blank=True, default="", editable=False)
    base_url = models.CharField(max_length=500, blank=True, default="")
    # What is not secret: api_version, deployment, region.
    options = models.JSONField(default=dict, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["project_id", "provider"]
        constraints = [
            models.UniqueConstraint(fields=["project", "provider"], name="one_integration_per_provider"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.provider} of {self.project_id}"


class PriceSource(models.TextChoices):
    CATALOG_A = "catalog_a"
    CATALOG_B = "catalog_b"
    MANUAL = "manual"


class ModelPrice(models.Model):
    """US dollars per 1,000,000 tokens; null is unknown, never free. A `manual` price is never overwritten."""

    provider = models.CharField(max_length=50)
    model = models.CharField(max_length=200)
    input_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    output_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    cache_read_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    cache_write_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    source = models.CharField(max_length=10, choices=PriceSource, default=PriceSource.MANUAL)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["provider", "model"]
        constraints = [models.UniqueConstraint(fields=["provider", "model"], name="one_price_per_model")]

    @override
    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"
