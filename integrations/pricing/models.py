from __future__ import annotations

from collections.abc import Mapping

from django.db import models
from django.db.models import Q

from core.models import Project


class PriceSource(models.TextChoices):
    CATALOG_A = "catalog_a"
    CATALOG_B = "catalog_b"
    MANUAL = "manual"
    SANDBOX = "sandbox"


SOURCE_TITLES: Mapping[str, str] = {
    PriceSource.CATALOG_A: "LiteLLM's price list",
    PriceSource.CATALOG_B: "models.dev",
    PriceSource.MANUAL: "a price set by hand",
    PriceSource.SANDBOX: "the sandbox, made up",
}
"""What pages call where a price comes from."""


class PriceFields(models.Model):
    """Prices in US dollars per 1,000,000 tokens; null is unknown, never free. `pricing/terms.py` describes the form of
    `terms`."""

    provider = models.CharField(max_length=50)
    model = models.CharField(max_length=200)
    input_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    output_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    cache_read_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    cache_write_cost_per_1m = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    # The column has a default in the database, so that processes of the previous release can still write rows.
    terms = models.JSONField(default=dict, db_default={}, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class ModelPrice(PriceFields):
    """The current price of a model's tokens. A row without a project applies to all projects; a project's own row,
    always `manual`, replaces it there. The sync never overwrites a `manual` price."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    source = models.CharField(max_length=10, choices=PriceSource, default=PriceSource.MANUAL)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["provider", "model"]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model"], condition=Q(project__isnull=True), name="one_price_per_model"
            ),
            models.UniqueConstraint(fields=["project", "provider", "model"], name="one_override_per_model"),
            models.CheckConstraint(
                condition=Q(project__isnull=True) | Q(source=PriceSource.MANUAL), name="overrides_are_manual"
            ),
        ]


class CatalogPrice(PriceFields):
    """The last price in each catalog, kept as the fallback while another source applies."""

    source = models.CharField(max_length=10, choices=PriceSource)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "provider", "model"], name="one_price_per_catalog"),
        ]


class PricePeriod(PriceFields):
    """The period in which a price applied, open while it applies. `changed_by` is an actor, `sync:<id of the log>` or
    `shipped`."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    source = models.CharField(max_length=10, choices=PriceSource)
    valid_from = models.DateTimeField()
    valid_until = models.DateTimeField(null=True, blank=True)
    changed_by = models.CharField(max_length=200)

    class Meta:
        ordering = ["-valid_from", "-id"]
        indexes = [models.Index(fields=["provider", "model", "valid_from"], name="price_periods_of_model")]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model"],
                condition=Q(project__isnull=True, valid_until__isnull=True),
                name="one_open_period_per_model",
            ),
            models.UniqueConstraint(
                fields=["project", "provider", "model"],
                condition=Q(project__isnull=False, valid_until__isnull=True),
                name="one_open_period_per_override",
            ),
        ]


class CatalogState(models.Model):
    """The last successful reading of a catalog. Changes to the prices of all projects lock these rows."""

    source = models.CharField(max_length=10, primary_key=True, choices=PriceSource)
    url = models.CharField(max_length=2000, blank=True, default="")
    etag = models.CharField(max_length=500, blank=True, default="")
    # After a change of the reading code the catalog is read again even if its ETag is unchanged.
    reader = models.PositiveIntegerField(default=0)
    models_count = models.PositiveIntegerField(default=0)
    read_at = models.DateTimeField(null=True, blank=True)
    # A hash of the shipped list that was loaded last and of the prices that it led to.
    shipped = models.CharField(max_length=64, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return self.source


class PriceSyncLog(models.Model):
    """A run of the sync. At most one is `running`; the next run closes one that broke off."""

    class Status(models.TextChoices):
        RUNNING = "running"
        SUCCESS = "success"
        PARTIAL = "partial"
        FAILED = "failed"

    class Trigger(models.TextChoices):
        API = "api"
        SCHEDULE = "schedule"
        COMMAND = "command"
        ADMIN = "admin"

    status = models.CharField(max_length=10, choices=Status, default=Status.RUNNING)
    trigger = models.CharField(max_length=10, choices=Trigger)
    # The API never shows who started a run, since all projects see the same history.
    started_by = models.CharField(max_length=200, blank=True, default="")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    added = models.PositiveIntegerField(default=0)
    updated = models.PositiveIntegerField(default=0)
    removed = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    # The forms are [{"source", "model", "message"}] for errors and {source: {"status", "models", "refused"}} for the
    # catalogs.
    errors = models.JSONField(default=list, blank=True)
    catalogs = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["status"], condition=Q(status="running"), name="one_sync_at_a_time"),
        ]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M} {self.status}"
