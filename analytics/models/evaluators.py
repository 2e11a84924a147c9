from __future__ import annotations

import uuid
from enum import StrEnum

from django.db import models

from core.models import Project
from core.tenancy import ProjectManager

EVALUATOR_NAME_CHARACTERS = 100
EVALUATOR_DESCRIPTION_CHARACTERS = 2_000
ACTOR_CHARACTERS = 200

DEFAULT_GOOD_FROM = 0.5


class EvaluatorState(models.TextChoices):
    """An archived evaluator scores nothing new; what it scored stays."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class EvaluatorType(StrEnum):
    """Who gives this service's own scores; callers of the API may name others."""

    CODE = "code"
    HUMAN = "human"
    LLM_JUDGE = "llm_judge"
    USER = "user"


class Evaluator(models.Model):
    """`kind` is one of `analytics.evaluators.definitions.KINDS` and never changes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="evaluators")
    name = models.CharField(max_length=EVALUATOR_NAME_CHARACTERS)
    description = models.CharField(max_length=EVALUATOR_DESCRIPTION_CHARACTERS, blank=True, default="")
    kind = models.CharField(max_length=20)
    state = models.CharField(max_length=8, choices=EvaluatorState, default=EvaluatorState.ACTIVE)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_evaluator_per_name")]

    def __str__(self) -> str:
        return self.name


class EvaluatorVersion(models.Model):
    """A definition that never changes. An answer with a score of `good_from` or more is good.

    `labels_scored_until` and `anchors_judged_at` say how far the labelled answers are scored
    (`analytics.evaluators.calibration.due`).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    evaluator = models.ForeignKey(Evaluator, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    definition = models.JSONField(default=dict)
    good_from = models.FloatField(default=DEFAULT_GOOD_FROM)
    labels_scored_until = models.DateTimeField(null=True, editable=False)
    anchors_judged_at = models.DateTimeField(null=True, editable=False)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["evaluator_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["evaluator", "number"], name="one_evaluator_version_per_number")]

    def __str__(self) -> str:
        return f"version {self.number}"
