"""Access to providers, and what their tokens cost."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from typing_extensions import override

from core.models import Project
from core.tenancy import ProjectManager
from integrations import registry
from integrations.pricing.models import CatalogPrice as CatalogPrice
from integrations.pricing.models import CatalogState as CatalogState
from integrations.pricing.models import ModelPrice as ModelPrice
from integrations.pricing.models import PricePeriod as PricePeriod
from integrations.pricing.models import PriceSource as PriceSource
from integrations.pricing.models import PriceSyncLog as PriceSyncLog


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
    # Put into every request (providers/additions.py); null: the headers that the provider's traits name. Workers of the
    # revision before know none of these columns: hence the database's own defaults.
    default_parameters = models.JSONField(default=dict, db_default={}, blank=True)
    forced_parameters = models.JSONField(default=dict, db_default={}, blank=True)
    encrypted_headers = models.TextField(blank=True, default="", db_default="", editable=False)
    forward_headers = models.JSONField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    # What came of the last test of exactly this access; a changed key or address has not been tested.
    last_tested_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_test_ok = models.BooleanField(null=True, editable=False)
    last_test_reason = models.CharField(max_length=30, blank=True, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    # What `manage.py rotate_encryption_keys` re-encrypts (core.rotation).
    encrypted_fields = ("encrypted_secret", "encrypted_extra", "encrypted_headers")

    class Meta:
        ordering = ["project_id", "provider"]
        constraints = [
            models.UniqueConstraint(fields=["project", "provider"], name="one_integration_per_provider"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.provider} of {self.project_id}"
