from __future__ import annotations

from typing import Any, Self

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import F, Q, UniqueConstraint, Value
from django.db.models.functions import Coalesce, NullIf

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
    """Checks against the registry: with `choices` of the field every new provider would need a migration."""
    if not registry.is_known(provider):
        raise ValidationError("Unknown provider.", code="unknown_provider")


NAME_LENGTH = 50
MAX_WEIGHT = MAX_PRIORITY = 1000
MAX_VENDOR_LIMIT = 1_000_000_000


class ProviderIntegration(models.Model):
    """A project's access to one provider: one of its deployments there. `provider` is its kind; `name` distinguishes
    several of one kind. Secrets are stored encrypted, and only their tail is ever shown."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="integrations")
    provider = models.CharField(max_length=50, validators=[validate_provider])
    # Workers of the previous release leave the name and the columns of the choice among deployments out. An empty name
    # stands for the kind, in the constraint too.
    name = models.CharField(max_length=NAME_LENGTH, blank=True, default="", db_default="")
    # Among the deployments of a model, those of the lowest priority come first, each as often as its weight says.
    weight = models.PositiveIntegerField(default=1, db_default=1, validators=[MaxValueValidator(MAX_WEIGHT)])
    priority = models.PositiveIntegerField(default=0, db_default=0, validators=[MaxValueValidator(MAX_PRIORITY)])
    # The vendor's own limits of this deployment, in requests and tokens a minute; null is no limit.
    rpm = models.PositiveIntegerField(null=True, blank=True)
    tpm = models.PositiveIntegerField(null=True, blank=True)
    # The objects are those of the fields `models` and `prices` of the API (checked_deployments.py).
    served_models = models.JSONField(default=list, db_default=[], blank=True)
    own_prices = models.JSONField(default=list, db_default=[], blank=True)
    # The encrypted secret and the encrypted extra fields are tokens of core.encryption.fernet: one of the API key, one
    # of a JSON object with further secret fields.
    encrypted_secret = models.TextField(blank=True, default="", editable=False)
    encrypted_extra = models.TextField(blank=True, default="", editable=False)
    secret_tail = models.CharField(max_length=4, blank=True, default="", editable=False)
    base_url = models.CharField(max_length=500, blank=True, default="")
    # The options are not secret: api_version, deployment, region.
    options = models.JSONField(default=dict, blank=True)
    # The parameters and headers below are added to every request (providers/additions.py); null stands for the headers
    # that the provider's traits name. Workers of the previous release do not know these columns, so they have defaults
    # in the database.
    default_parameters = models.JSONField(default=dict, db_default={}, blank=True)
    forced_parameters = models.JSONField(default=dict, db_default={}, blank=True)
    encrypted_headers = models.TextField(blank=True, default="", db_default="", editable=False)
    forward_headers = models.JSONField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    # Whether no other project uses the account behind the key: then requests may name all that it keeps.
    own_account = models.BooleanField(default=False, db_default=False)
    # The outcome of the last test of an integration belongs to exactly this access; it is cleared when the key or
    # address changes.
    last_tested_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_test_ok = models.BooleanField(null=True, editable=False)
    last_test_reason = models.CharField(max_length=30, blank=True, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    # `manage.py rotate_encryption_keys` encrypts the listed fields again (core.encryption.rotation).
    encrypted_fields = ("encrypted_secret", "encrypted_extra", "encrypted_headers")

    class Meta:
        ordering = ["project_id", "provider", "name"]
        constraints = [
            UniqueConstraint(
                F("project"),
                Coalesce(NullIf(F("name"), Value("")), F("provider")),
                name="one_integration_per_name",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.project_id}"

    def save(self, *args: Any, **options: Any) -> None:
        self.name = self.name or self.provider
        super().save(*args, **options)

    @classmethod
    def from_db(cls, *args: Any, **options: Any) -> Self:
        row = super().from_db(*args, **options)
        if row.__dict__.get("name") == "" and "provider" in row.__dict__:
            row.name = row.provider
        return row


def called(name: str) -> Q:
    # PostgreSQL takes no text with a NUL, which no name has.
    return Q(pk__in=()) if "\0" in name else Q(name=name) | Q(name="", provider=name)


class ProviderModelList(models.Model):
    """A provider's latest list of models. It belongs to the address and the options that it was read with."""

    integration = models.OneToOneField(
        ProviderIntegration, on_delete=models.CASCADE, primary_key=True, related_name="model_list"
    )
    base_url = models.CharField(max_length=500, blank=True, default="")
    options = models.JSONField(default=dict, blank=True)
    # The objects are those of `model_lists.listed.ListedModel`.
    listed = models.JSONField(default=list, blank=True)
    tried_at = models.DateTimeField(db_index=True)
    listed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"models of integration {self.integration_id}"
