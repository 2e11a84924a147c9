"""The tables of experiments: past requests that several candidates answer once more, side by side."""

from __future__ import annotations

import uuid

from django.db import models
from typing_extensions import override

from core.models import Project
from core.tenancy import ProjectManager

NAME_CHARACTERS = 200
ACTOR_CHARACTERS = 200
LABELS = ("A", "B", "C", "D")
TIE = "tie"


class ExperimentState(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


UNFINISHED = (ExperimentState.PENDING, ExperimentState.RUNNING)


class AnswerState(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class Experiment(models.Model):
    """An experiment. `candidates` is a list as `gateway.experiments.candidates` writes it, in the order of
    their labels; `filter` holds the parameters of the request log that its items were taken by."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="experiments")
    name = models.CharField(max_length=NAME_CHARACTERS, blank=True, default="")
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    state = models.CharField(max_length=10, choices=ExperimentState, default=ExperimentState.PENDING)
    candidates = models.JSONField(default=list)
    filter = models.JSONField(default=dict)
    order = models.CharField(max_length=10, default="newest")
    item_limit = models.PositiveSmallIntegerField()
    judge = models.BooleanField(default=False)
    # The reason why an experiment ended before all answers were there.
    failure = models.CharField(max_length=1000, blank=True, default="")
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # Until then no other worker may take the experiment; the worker that has it moves the time on while it lives.
    claimed_until = models.DateTimeField(null=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["project", "-created_at"], name="experiments_of_project")]

    @override
    def __str__(self) -> str:
        return self.name or f"experiment {self.pk}"


class ExperimentItem(models.Model):
    """A past request whose item is tried. `winner` is the label that a person picked, `tie`, or empty."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveSmallIntegerField()
    request_id = models.UUIDField()
    requested_at = models.DateTimeField()
    preview = models.TextField(blank=True, default="")
    # The version that served the request; null and 0 without a managed prompt.
    prompt_config_id = models.UUIDField(null=True)
    prompt_version = models.PositiveIntegerField(default=0)
    winner = models.CharField(max_length=3, blank=True, default="")
    winner_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")

    class Meta:
        ordering = ["experiment_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "position"], name="one_experiment_item_per_position")
        ]

    @override
    def __str__(self) -> str:
        return f"item {self.position}"


class ExperimentAnswer(models.Model):
    """The answer of one candidate to one item. `request_id` is that of the experiment's own request; `answer` the
    message of the completion, `score` the mean of the judge's grades and `grades` the grades with their reasons."""

    item = models.ForeignKey(ExperimentItem, on_delete=models.CASCADE, related_name="answers")
    candidate = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=AnswerState, default=AnswerState.PENDING)
    tries = models.PositiveSmallIntegerField(default=0)
    request_id = models.CharField(max_length=64, blank=True, default="")
    provider = models.CharField(max_length=100, blank=True, default="")
    model = models.CharField(max_length=512, blank=True, default="")
    prompt_version = models.PositiveIntegerField(default=0)
    answer = models.JSONField(null=True)
    finish_reason = models.CharField(max_length=100, blank=True, default="")
    cost_usd = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    warning = models.TextField(blank=True, default="")
    error_code = models.CharField(max_length=100, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    score = models.FloatField(null=True)
    grades = models.JSONField(null=True)
    judge_error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["item_id", "candidate"]
        constraints = [
            models.UniqueConstraint(fields=["item", "candidate"], name="one_experiment_answer_per_candidate")
        ]

    @override
    def __str__(self) -> str:
        return f"answer of {LABELS[self.candidate]}"
