from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db import models
from django.db.models import Q
from django.utils import timezone

from core.models import Project
from core.tenancy import ProjectManager

DATASET_NAME_CHARACTERS = 100
DESCRIPTION_CHARACTERS = 10_000
PREVIEW_CHARACTERS = 300
ACTOR_CHARACTERS = 200

_SEPARATOR = "\n"


class DatasetRetention(models.TextChoices):
    """How long items stay: as long as their project keeps requests, or until somebody deletes them."""

    PROJECT = "project"
    KEPT = "kept"


class DatasetAction(models.TextChoices):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Dataset(models.Model):
    """`version` is 0 for a set that never had an item, and grows by one with each change of its items."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=DATASET_NAME_CHARACTERS)
    description = models.TextField(max_length=DESCRIPTION_CHARACTERS, blank=True, default="")
    version = models.PositiveIntegerField(default=0)
    retention = models.CharField(max_length=7, choices=DatasetRetention, default=DatasetRetention.PROJECT)
    # The number of items in the latest version: a list of sets counts no items.
    item_count = models.PositiveIntegerField(default=0)
    # The position of the item that was added last; those of items that are gone are not used again.
    last_position = models.PositiveIntegerField(default=0)
    # Items that are in no version any more, because their request was deleted or the project's retention was over.
    erased_items = models.PositiveIntegerField(default=0)
    expired_items = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = ProjectManager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        default_permissions = ()
        verbose_name = "data set"
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_dataset_per_name")]
        indexes = [models.Index(fields=["project", "-updated_at", "-id"], name="dataset_by_time")]

    def __str__(self) -> str:
        return self.name


class DatasetVersion(models.Model):
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=7, choices=DatasetAction)
    items = models.PositiveIntegerField()
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-number"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="one_dataset_version_per_number")]

    def __str__(self) -> str:
        return f"version {self.number} of {self.dataset_id}"


class DatasetItem(models.Model):
    """An item, as it is in the versions from `added_in` to the one before `removed_in`.

    Only `removed_in` of a row changes: a changed item gets another row with the same `item_id` and `position`.
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="items")
    item_id = models.UUIDField(default=uuid.uuid4)
    position = models.PositiveIntegerField()
    added_in = models.PositiveIntegerField()
    removed_in = models.PositiveIntegerField(null=True)
    messages = models.JSONField()
    # The values of a managed prompt's variables.
    variables = models.JSONField(default=dict)
    # The other fields of the request's body: its model, tools, response_format and so on.
    parameters = models.JSONField(default=dict)
    # A text or any other JSON; null for an item of which no answer is expected.
    expected = models.JSONField(null=True)
    # Each tag between separators, so that one is found as a part of this text in every database.
    tag_text = models.TextField(blank=True, default="")
    preview = models.CharField(max_length=PREVIEW_CHARACTERS, blank=True, default="")
    # The SHA-256 of messages, variables and parameters: equal inputs have equal ones, whatever is expected of them.
    input_hash = models.CharField(max_length=64)
    # The managed prompt that served the request. The ids are no foreign keys, because prompts are another app.
    prompt_config_id = models.UUIDField(null=True)
    prompt_version = models.PositiveIntegerField(null=True)
    source_request_id = models.UUIDField(null=True)
    # The SHA-256 of the request's id and of its session's, empty without one: what was deleted is known by these alone.
    request_hash = models.CharField(max_length=64, blank=True, default="")
    session_hash = models.CharField(max_length=64, blank=True, default="")
    # The time from which retention counts: that of the request, or at which an item without one was added.
    retained_from = models.DateTimeField()

    class Meta:
        ordering = ["position"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["dataset", "item_id", "added_in"], name="one_dataset_item_per_version"),
            models.UniqueConstraint(
                fields=["dataset", "item_id"], condition=Q(removed_in=None), name="one_latest_dataset_item"
            ),
        ]
        indexes = [
            models.Index(fields=["dataset", "position"], name="dataset_item_by_position"),
            models.Index(fields=["request_hash"], condition=~Q(request_hash=""), name="dataset_item_by_request"),
            models.Index(fields=["session_hash"], condition=~Q(session_hash=""), name="dataset_item_by_session"),
            models.Index(fields=["dataset", "retained_from"], name="dataset_item_by_expiry"),
        ]

    def __str__(self) -> str:
        return f"{self.position} of {self.dataset_id}"

    @property
    def tags(self) -> list[str]:
        return self.tag_text.strip(_SEPARATOR).split(_SEPARATOR) if self.tag_text else []


def tag_text(tags: Iterable[str]) -> str:
    found = sorted(set(tags))
    return f"{_SEPARATOR}{_SEPARATOR.join(found)}{_SEPARATOR}" if found else ""
