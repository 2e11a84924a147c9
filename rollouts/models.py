from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q

from core.models import Project
from core.tenancy import ProjectManager
from prompts.models import PromptConfig, PromptVersion, WrittenOnce
from rollouts.allocation import AllocationType
from rollouts.states import ACTIVE, Stage, Status, Transition

NAME_CHARACTERS = 100
ACTOR_CHARACTERS = 200
REASON_CHARACTERS = 1000


class Mode(models.TextChoices):
    AUTO = "auto"
    MANUAL = "manual"


class Gate(models.TextChoices):
    NONE = "none"
    EXPERIMENT = "experiment"  # An experiment over a data set, in which the target passed against the baseline.
    SHADOW = "shadow"  # The target's answers to requests of the baseline, which no user sees.


class StageStatus(models.TextChoices):
    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    ROLLED_BACK = "rolled_back"  # The rollout ended at this stage.
    SKIPPED = "skipped"  # The rollout ended before this stage.


class Rollout(models.Model):
    """Moves a config's traffic from its active version, the baseline, to the target, stage by stage.

    Only transitions save it: the gateway listens, and re-reads the project each time. RolloutEvaluation holds the state
    between two minutes.
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
    # The fields of `evaluation.Policy` that differ from its defaults: the action for each failing metric, and how much
    # more the target may cost.
    policy = models.JSONField(default=dict)
    # The `quality.entries.QualityEntry`s: the evaluators whose scores are judged, and what follows from them.
    quality = models.JSONField(default=list, db_default=[])
    gate = models.CharField(max_length=10, choices=Gate, default=Gate.NONE, db_default=Gate.NONE.value)
    # The data set that the gate asks for, which may have been deleted since; null for any of the project's.
    gate_dataset_id = models.UUIDField(null=True)
    status = models.CharField(
        max_length=11, choices=[(item.value, item.value) for item in Status], default=Status.PENDING.value
    )
    # Stages count from 1; the value is 0 before the start.
    current_stage = models.PositiveSmallIntegerField(default=0)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    stage_started_at = models.DateTimeField(null=True)
    # A stage's minimum duration leaves pauses out, so the row keeps the seconds before the last pause and the restart.
    stage_seconds = models.FloatField(default=0.0)
    running_since = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            # Two active rollouts of one config would both decide what it serves.
            models.UniqueConstraint(
                fields=["config"],
                condition=Q(status__in=sorted(status.value for status in ACTIVE)),
                name="one_active_rollout_per_config",
            ),
            models.CheckConstraint(condition=~Q(target_version=F("baseline_version")), name="rollout_moves_somewhere"),
        ]

    def __str__(self) -> str:
        return self.name

    def requests_between(self, now: datetime) -> tuple[datetime, datetime]:
        """Returns the range of the rollout's requests up to `now`, wider by a minute: host clocks differ, and requests
        may arrive before the start is stored or after the end."""
        start, end = self.started_at or self.created_at, self.ended_at or now
        return start - timedelta(minutes=1), end + timedelta(minutes=1)


class RolloutStage(models.Model):
    """Gives `weight` percent of the traffic to the target. Automatic promotion needs both minima. In the first
    `settle_minutes`, and in as many after each pause, latency and cost are not judged."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="stages")
    number = models.PositiveSmallIntegerField()
    weight = models.PositiveSmallIntegerField()
    min_duration_minutes = models.PositiveIntegerField()
    min_requests = models.PositiveIntegerField()
    settle_minutes = models.PositiveIntegerField(default=0, db_default=0)
    entered_at = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["rollout_id", "number"]
        constraints = [models.UniqueConstraint(fields=["rollout", "number"], name="one_rollout_stage_per_number")]

    def __str__(self) -> str:
        return f"stage {self.number}: {self.weight} %"

    @property
    def status(self) -> StageStatus:
        ended = Status(self.rollout.status).is_terminal
        if self.entered_at is None:
            return StageStatus.SKIPPED if ended else StageStatus.PENDING
        if self.left_at is None:
            return StageStatus.ACTIVE
        if self.number == self.rollout.current_stage and self.rollout.status == Status.ROLLED_BACK:
            return StageStatus.ROLLED_BACK
        return StageStatus.COMPLETED

    @property
    def plan(self) -> Stage:
        return Stage(self.weight, self.min_duration_minutes, self.min_requests, self.settle_minutes)


class RolloutTransition(WrittenOnce):
    """One transition: who, when, from and to which status and stage, why, and the figures behind it. Rows never
    change.
    """

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
    # The figures of the latest verdict at that time are empty when there was none. Those of a transition that opened a
    # gate have its `gate` (see `gate.state`).
    figures = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["rollout_id", "id"]

    def __str__(self) -> str:
        return f"{self.action} {self.created_at:%Y-%m-%d %H:%M:%S}"

    def audited_values(self) -> dict[str, Any]:
        gate = self.figures.get("gate") or {}
        return {f"gate.{name}": gate[name] for name in ("state", "experiment_id", "missing") if gate.get(name)}


class RolloutEvaluation(models.Model):
    """The evaluation's state between two minutes, and the claim of the process that evaluates.

    `initial` and the rollout's RolloutMinutes reproduce `state` to the last digit, by the formula that `initial` names.
    """

    rollout = models.OneToOneField(Rollout, on_delete=models.CASCADE, related_name="evaluation", primary_key=True)
    initial = models.JSONField(null=True)  # The `evaluation.State` at the start.
    state = models.JSONField(null=True)  # The `evaluation.State` after the latest minute.
    # The end of the latest closed minute that was evaluated; minutes without traffic leave no row.
    through = models.DateTimeField(null=True)
    verdict = models.JSONField(default=dict)  # The figures of the latest verdict, see rollouts.verdicts.figures.
    decided_at = models.DateTimeField(null=True)
    # The requests that were counted while they were open (`still_open.Counted`), whose rows must not count them again.
    counted_open = models.JSONField(default=list, db_default=[])
    # The `evaluation.segments.SegmentState` after the latest minute. No verdict rests on it, and the minutes' counts by
    # segment are not kept.
    segments = models.JSONField(null=True)
    # The latest stage for which operators were notified that the rollout waits for too long.
    overdue_stage = models.PositiveSmallIntegerField(default=0)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["rollout_id"]

    def __str__(self) -> str:
        return f"evaluation of {self.rollout_id}"


class RolloutWatch(models.Model):
    """The watch over a target with all of the traffic, against the baseline's last week before that. It warns and never
    makes a transition."""

    rollout = models.OneToOneField(Rollout, on_delete=models.CASCADE, related_name="watch", primary_key=True)
    since = models.DateTimeField()
    # The `watch.hours.Before`, which does not change.
    before = models.JSONField()
    # The `watch.hours.Hour`s since then, and the end of the last one.
    hours = models.JSONField(default=list)
    through = models.DateTimeField()
    # By metric: the latest figures (`watch.comparison.Compared`), and the time of the first warning.
    figures = models.JSONField(default=dict)
    warned_at = models.JSONField(default=dict)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["rollout_id"]

    def __str__(self) -> str:
        return f"watch of {self.rollout_id}"


class RolloutMinute(models.Model):
    """One closed minute of one stage as the evaluation saw it. `counts` is a `MinuteCounts` of the requests recorded in
    this minute."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="minutes")
    minute = models.DateTimeField()
    stage = models.PositiveSmallIntegerField()
    counts = models.JSONField()

    class Meta:
        ordering = ["rollout_id", "minute", "stage"]
        constraints = [models.UniqueConstraint(fields=["rollout", "minute", "stage"], name="one_rollout_minute")]

    def __str__(self) -> str:
        return f"{self.minute:%Y-%m-%d %H:%M} stage {self.stage}"


class RolloutQuality(models.Model):
    """A rollout's evaluators as they were at its start, and their evidence between two looks. RolloutEvaluation's claim
    covers it.

    `initial` and the rollout's RolloutQualityMinutes reproduce `state` to the last digit.
    """

    rollout = models.OneToOneField(
        Rollout, on_delete=models.CASCADE, related_name="quality_evaluation", primary_key=True
    )
    evaluators = models.JSONField(default=list)  # The `quality.entries.RolloutEvaluator`s.
    initial = models.JSONField(null=True)  # The `evaluation.quality.QualityState` at the start.
    state = models.JSONField(null=True)  # The `evaluation.quality.QualityState` after the latest minute.
    # The end of the latest minute that was handed over, by basis: all tasks of the minutes before have ended.
    through = models.JSONField(default=dict)
    # Of sticky allocation, the `verdicts.quality.users.Users` so far.
    users = models.JSONField(null=True)
    # The times at which the calibrations were last looked at, by basis.
    calibrated_at = models.JSONField(default=dict)

    class Meta:
        ordering = ["rollout_id"]
        default_permissions = ()

    def __str__(self) -> str:
        return f"quality of {self.rollout_id}"


class RolloutQualityMinute(models.Model):
    """The tasks of one minute of one stage, as the evaluators of one basis took them. `tasks` is an
    `evaluation.quality.QualityMinute`."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="quality_minutes")
    basis = models.CharField(max_length=8)
    minute = models.DateTimeField()
    stage = models.PositiveSmallIntegerField()
    tasks = models.JSONField()

    class Meta:
        ordering = ["rollout_id", "basis", "minute", "stage"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["rollout", "basis", "minute", "stage"], name="one_rollout_quality_minute")
        ]

    def __str__(self) -> str:
        return f"{self.basis} of {self.minute:%Y-%m-%d %H:%M} stage {self.stage}"
