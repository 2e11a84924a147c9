from __future__ import annotations

import uuid

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from core.models import Project
from core.tenancy import ProjectManager

MAX_DESTINATIONS = 3
DESTINATION_NAME_CHARACTERS = 100
ENDPOINT_CHARACTERS = 500
ERROR_CHARACTERS = 300


class TraceDestination(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="trace_destinations")
    name = models.CharField(max_length=DESTINATION_NAME_CHARACTERS)
    # The URL that spans are posted to, which ends in `/v1/traces`.
    endpoint = models.CharField(max_length=ENDPOINT_CHARACTERS)
    # A token of core.encryption.fernet: the JSON object of the headers, which hold the collector's key.
    encrypted_headers = models.TextField(blank=True, default="", editable=False)
    enabled = models.BooleanField(default=True)
    # The share of traces that are exported, above 0 up to 1.
    sampling_ratio = models.FloatField(default=1.0, validators=[MinValueValidator(0.0), MaxValueValidator(1.0)])
    include_content = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    # `manage.py rotate_encryption_keys` encrypts the listed fields again (core.encryption.rotation).
    encrypted_fields = ("encrypted_headers",)

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_trace_destination_per_name")]

    def __str__(self) -> str:
        return self.name


class TraceDestinationStatus(models.Model):
    """The state of one destination's export from one host, whose exporter writes it every few seconds.

    The counts run since the host's folder was made: `sent` spans were taken by the collector, `dropped` given up by the
    exporter, `rejected` refused within a batch that the collector took otherwise.
    """

    destination = models.ForeignKey(TraceDestination, on_delete=models.CASCADE, related_name="statuses")
    host = models.CharField(max_length=255)
    waiting_spans = models.PositiveBigIntegerField(default=0)
    waiting_bytes = models.PositiveBigIntegerField(default=0)
    oldest_waiting_at = models.DateTimeField(null=True)
    sent_spans = models.PositiveBigIntegerField(default=0)
    dropped_spans = models.PositiveBigIntegerField(default=0)
    rejected_spans = models.PositiveBigIntegerField(default=0)
    last_success_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=ERROR_CHARACTERS, blank=True, default="")
    last_error_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["destination", "host"], name="one_trace_status_per_host")]

    def __str__(self) -> str:
        return f"{self.destination_id} on {self.host}"
