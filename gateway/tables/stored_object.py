from __future__ import annotations

from django.db import models

from core.models import Project
from core.tenancy import ProjectManager
from integrations.models import ProviderIntegration

ID_CHARACTERS = 200


class ObjectKind(models.TextChoices):
    FILE = "file"
    BATCH = "batch"
    MESSAGE_BATCH = "message_batch"


class StoredObject(models.Model):
    """A file or a batch that a provider keeps, by the provider's own id.

    Only its project reaches it, and always by the integration that made it. `value` is the provider's object as it was
    last seen. `endpoint` is where the requests of a batch, or of its input file, go, `model_names` are the models that
    they name, and `lines` their number. `batch_id` is the provider's id of the batch whose results a file holds, empty
    for a file that a client uploaded. Results are priced once: `priced_as` names the records (`analytics.spool.held`),
    and `cost_usd` is their sum, null while none of it is known.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="stored_objects")
    integration = models.ForeignKey(ProviderIntegration, on_delete=models.SET_NULL, null=True, related_name="+")
    kind = models.CharField(max_length=20, choices=ObjectKind)
    provider = models.CharField(max_length=50)
    vendor_id = models.CharField(max_length=ID_CHARACTERS)
    # The key, the end user and the session of the call that made it, whose budgets its results count in.
    api_key_id = models.BigIntegerField()
    # The team that the key belonged to then, to which the object's cost goes; 0 without one.
    team_id = models.BigIntegerField(default=0, db_default=0)
    user_id = models.CharField(max_length=500, blank=True, default="")
    session_id = models.CharField(max_length=500, blank=True, default="")
    purpose = models.CharField(max_length=50, blank=True, default="")
    endpoint = models.CharField(max_length=100, blank=True, default="")
    model_names = models.JSONField(default=list)
    lines = models.PositiveIntegerField(default=0)
    batch_id = models.CharField(max_length=ID_CHARACTERS, blank=True, default="")
    state = models.CharField(max_length=30, blank=True, default="")
    value = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    priced_at = models.DateTimeField(null=True)
    priced_as = models.CharField(max_length=100, blank=True, default="", db_index=True)
    cost_usd = models.DecimalField(max_digits=20, decimal_places=10, null=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "vendor_id"], name="one_stored_object_per_id"),
        ]
        indexes = [models.Index(fields=["project", "kind", "-id"], name="stored_objects_of_project")]

    def __str__(self) -> str:
        return f"{self.kind} {self.vendor_id}"
