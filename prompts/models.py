from __future__ import annotations

import uuid
from typing import Any

from django.db import models
from django.db.models import Q

from core.models import Project
from core.tenancy import ProjectManager
from prompts.fields import OrderedJSONField

NAME_CHARACTERS = 100
DESCRIPTION_CHARACTERS = 2000
MODEL_CHARACTERS = 200
COMMIT_MESSAGE_CHARACTERS = 1000
REASON_CHARACTERS = 1000
ACTOR_CHARACTERS = 200
LATEST = "latest"
"""The label that every config has: that of its version with the highest number."""
LABEL_CHARACTERS = 50


class PromptConfig(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="prompt_configs")
    name = models.CharField(max_length=NAME_CHARACTERS)
    description = models.TextField(blank=True, default="")
    # Null only before the first version. RESTRICT: versions are deleted with their config, never alone.
    active_version = models.ForeignKey(
        "PromptVersion", on_delete=models.RESTRICT, null=True, blank=True, editable=False, related_name="+"
    )
    # The highest number of any version so far. It is stored, not counted, so that no number is used twice.
    last_version_number = models.PositiveIntegerField(default=0, editable=False)
    # This app owns the flag so that it can refuse changes during a rollout; `rollouts` sets it through a service.
    has_active_rollout = models.BooleanField(default=False, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["project_id", "name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_prompt_config_per_name")]

    def __str__(self) -> str:
        return self.name


class WrittenOnce(models.Model):
    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError(f"A {type(self).__name__} is never changed once it is stored")
        super().save(*args, **kwargs)


class PromptVersion(WrittenOnce):
    """The content of one version of a config. Written once: a change is a new version.

    Either `system_prompt` or `messages` is set, a list of `{role, content}` and `{prompt}`. `variables` is a list of
    `{name, type, required}`, `tools` of OpenAI's function tools, `response_format` OpenAI's. An empty `model` and null
    leave the request's value.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    config = models.ForeignKey(PromptConfig, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    system_prompt = models.TextField()
    messages = OrderedJSONField(default=list, db_default=[])
    model = models.CharField(max_length=MODEL_CHARACTERS, blank=True, default="")
    temperature = models.FloatField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    variables = OrderedJSONField(default=list)
    tools = OrderedJSONField(default=list)
    response_format = OrderedJSONField(null=True, blank=True)
    commit_message = models.CharField(max_length=COMMIT_MESSAGE_CHARACTERS, blank=True, default="")
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["config_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["config", "number"], name="one_prompt_version_per_number")]

    def __str__(self) -> str:
        return f"version {self.number}"


class PromptActivation(WrittenOnce):
    """One move of a config's active version. Append-only."""

    class Kind(models.TextChoices):
        CREATED = "created"  # The move to the first version has no `from_version`.
        ACTIVATED = "activated"
        UNDONE = "undone"
        ROLLOUT = "rollout"  # The rollout whose completion moved the version.

    config = models.ForeignKey(PromptConfig, on_delete=models.CASCADE, related_name="activations")
    from_version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, null=True, related_name="+")
    to_version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind)
    # The move that an undo reverted. One to one: a move is reverted once, so of two simultaneous undos each reverts
    # another move, or one is refused.
    undoes = models.OneToOneField("self", on_delete=models.CASCADE, null=True, related_name="undone_by")
    actor = models.CharField(max_length=ACTOR_CHARACTERS)
    reason = models.CharField(max_length=REASON_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["config_id", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="undone", undoes__isnull=False) | (~Q(kind="undone") & Q(undoes__isnull=True)),
                name="only_an_undo_undoes",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.created_at:%Y-%m-%d %H:%M:%S}"


class PromptLabel(models.Model):
    """A name such as `production` for one version of a config. Only administrators move a protected one."""

    config = models.ForeignKey(PromptConfig, on_delete=models.CASCADE, related_name="labels")
    name = models.CharField(max_length=LABEL_CHARACTERS)
    # RESTRICT: versions are deleted with their config, never alone.
    version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, related_name="labels")
    is_protected = models.BooleanField(default=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["config_id", "name"]
        constraints = [models.UniqueConstraint(fields=["config", "name"], name="one_prompt_label_per_name")]

    def __str__(self) -> str:
        return self.name


class PromptLabelMove(WrittenOnce):
    """One move of a label. A new label has no `from_version`, a removed one no `to_version`. Append-only."""

    config = models.ForeignKey(PromptConfig, on_delete=models.CASCADE, related_name="label_moves")
    label = models.CharField(max_length=LABEL_CHARACTERS)
    from_version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, null=True, related_name="+")
    to_version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, null=True, related_name="+")
    actor = models.CharField(max_length=ACTOR_CHARACTERS)
    reason = models.CharField(max_length=REASON_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["config_id", "-id"]

    def __str__(self) -> str:
        return f"{self.label} {self.created_at:%Y-%m-%d %H:%M:%S}"
