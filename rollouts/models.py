"""Rollouts: their stages, every move they made, and what their automatic verdicts rest on."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models
from django.db.models import F, Q
from typing_extensions import override

from core.models import Project
from core.tenancy import ProjectManager
from prompts.models import PromptConfig, PromptVersion
from rollouts.allocation import AllocationType
from rollouts.states import ACTIVE, Status, Transition

NAME_CHARACTERS = 100
ACTOR_CHARACTERS = 200
REASON_CHARACTERS = 1000


class Mode(models.TextChoices):
    AUTO = "auto"
    MANUAL = "manual"


class StageStatus(models.TextChoices):
    """What became of a stage; derived from the rollout, not stored."""

    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    ROLLED_BACK = "rolled_back"  # the rollout ended here
    SKIPPED = "skipped"  # the rollout ended before


class Rollout(models.Model):
    """Moves a config's traffic from its active version, the baseline, to the target, stage by stage.

    Saved by transitions only: the gateway listens, and re-reads the project each time. What the evaluation remembers
    from minute to minute is in RolloutEvaluation.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rollouts")
    config = models.ForeignKey(PromptConfig, on_delete=models.CASCADE, related_name="rollouts")
    # RESTRICT: versions go with their config, and the rollout with them.
    baseline_version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, related_name="+")
    target_version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, related_name="+")
    name = models.CharField(max_length=NAME_CHARACTERS)
    mode = models.CharField(max_length=6, choices=Mode)
    allocation_type = models.CharField(max_length=14, choices=[(item.value, item.value) for item in AllocationType])
    # `evaluation.Policy`: which failing metric rolls back, which one holds, and how much dearer the target may be.
    policy = models.JSONField(default=dict)
    status = models.CharField(
        max_length=11, choices=[(item.value, item.value) for item in Status], default=Status.PENDING.value
    )
    # Stages count from 1; 0 before the start.
    current_stage = models.PositiveSmallIntegerField(default=0)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    stage_started_at = models.DateTimeField(null=True)
    # A stage's minimum duration leaves pauses out: seconds it ran before the last pause, and since when it runs again.
    stage_seconds = models.FloatField(default=0.0)
    running_since = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            # Two at a time would both decide what the config serves.
            models.UniqueConstraint(
                fields=["config"],
                condition=Q(status__in=sorted(status.value for status in ACTIVE)),
                name="one_active_rollout_per_config",
            ),
            models.CheckConstraint(condition=~Q(target_version=F("baseline_version")), name="rollout_moves_somewhere"),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class RolloutStage(models.Model):
    """`weight` percent of traffic to the target; promoted on its own only after both minima."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="stages")
    number = models.PositiveSmallIntegerField()
    weight = models.PositiveSmallIntegerField()
    min_duration_minutes = models.PositiveIntegerField()
    min_requests = models.PositiveIntegerField()
    entered_at = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["rollout_id", "number"]
        constraints = [models.UniqueConstraint(fields=["rollout", "number"], name="one_rollout_stage_per_number")]

    @override
    def __str__(self) -> str:
        return f"stage {self.number}: {self.weight} %"


class RolloutTransition(models.Model):
    """One move of a rollout: who, when, from, to, why, and the figures it was decided on. Rows are never changed."""

    CREATE = "create"

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="transitions")
    action = models.CharField(
        max_length=9, choices=[(CREATE, CREATE), *((item.value, item.value) for item in Transition)]
    )
    from_status = models.CharField(max_length=11, blank=True, default="")
    to_status = models.CharField(max_length=11)
    from_stage = models.PositiveSmallIntegerField(default=0)
    to_stage = models.PositiveSmallIntegerField(default=0)
    actor = models.CharField(max_length=ACTOR_CHARACTERS)
    reason = models.TextField(blank=True, default="")
    # The latest assessment at that time; empty when there was none.
    figures = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["rollout_id", "id"]

    @override
    def __str__(self) -> str:
        return f"{self.action} {self.created_at:%Y-%m-%d %H:%M:%S}"

    @override
    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("A RolloutTransition is never changed once it is stored")
        super().save(*args, **kwargs)


class RolloutEvaluation(models.Model):
    """What the evaluation remembers from one minute to the next, and which process is at it.

    `initial` and the rollout's RolloutMinutes give `state` again, to the last digit. The formula that `initial` names
    stays the rollout's to its end.
    """

    rollout = models.OneToOneField(Rollout, on_delete=models.CASCADE, related_name="evaluation", primary_key=True)
    initial = models.JSONField(null=True)  # `evaluation.State` at the start
    state = models.JSONField(null=True)  # `evaluation.State` after the latest minute
    # The end of the latest closed minute that was looked at; minutes without traffic leave no row.
    through = models.DateTimeField(null=True)
    verdict = models.JSONField(default=dict)  # the latest assessment: see rollouts.figures
    decided_at = models.DateTimeField(null=True)
    # Requests that were counted while they were open: `still_open.Counted`. Their rows must not count them again.
    counted_open = models.JSONField(default=list, db_default=[])
    # People were told that the rollout waits for too long, once a stage.
    overdue_stage = models.PositiveSmallIntegerField(default=0)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["rollout_id"]

    @override
    def __str__(self) -> str:
        return f"evaluation of {self.rollout_id}"


class RolloutMinute(models.Model):
    """One closed minute of one stage as the evaluation saw it: `counts` is a `MinuteCounts` of its formula.

    By the first formula the minute is that in which requests came, by the second that in which they were recorded.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="minutes")
    minute = models.DateTimeField()
    stage = models.PositiveSmallIntegerField()
    counts = models.JSONField()

    class Meta:
        ordering = ["rollout_id", "minute", "stage"]
        constraints = [models.UniqueConstraint(fields=["rollout", "minute", "stage"], name="one_rollout_minute")]

    @override
    def __str__(self) -> str:
        return f"{self.minute:%Y-%m-%d %H:%M} stage {self.stage}"
