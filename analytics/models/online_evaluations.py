from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from analytics.models.evaluators import Evaluator, EvaluatorVersion
from core.models import Project
from core.tenancy import ProjectManager

ACTOR_CHARACTERS = 200
REASON_CHARACTERS = 50
JUDGE_MODEL_CHARACTERS = 200


class EvaluationState(models.TextChoices):
    """A paused evaluation takes no sample and skips due tasks. A deleted one is hidden.

    Its tasks stay as long as their requests, since they say how many of the scores are missing.
    """

    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class TaskState(models.TextChoices):
    DUE = "due"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class SkipReason(models.TextChoices):
    BUDGET = "budget"  # The month's money of the evaluation or of the project is spent.
    NO_TEXT = "no_text"  # Its texts are not stored, or the project does not keep texts.
    MASKED = "masked"  # A guardrail masked something in it.
    TOO_OLD = "too_old"  # Nobody judged it in time.
    DISABLED = "disabled"  # The evaluation was paused or deleted, or its evaluator archived.


class OnlineEvaluation(models.Model):
    """An evaluator that scores a sample of the answers while they are served.

    `filter` holds parameters of `GET requests` as texts. `version` is null for the evaluator's newest. `matched` takes
    the same number of answers from both arms of each rollout, and no others. A share `label_share` of the due answers
    is due for a person, too; null for none.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="online_evaluations")
    evaluator = models.ForeignKey(Evaluator, on_delete=models.CASCADE, related_name="online_evaluations")
    version = models.ForeignKey(EvaluatorVersion, on_delete=models.CASCADE, null=True, related_name="+")
    filter = models.JSONField(default=dict)
    rate = models.FloatField()
    matched = models.BooleanField(default=False)
    label_share = models.FloatField(null=True)
    # Null for an evaluator that asks no model.
    monthly_budget_usd = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    state = models.CharField(max_length=7, choices=EvaluationState, default=EvaluationState.ACTIVE)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    # Requests that arrived before are in no sample.
    active_since = models.DateTimeField(default=timezone.now)
    # The sample of all minutes of record before this time is taken.
    sampled_until = models.DateTimeField()

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ()
        indexes = [models.Index(fields=["project", "-created_at"], name="online_evaluations_of_project")]

    def __str__(self) -> str:
        return f"online evaluation {self.pk}"


class EvaluationBudget(models.Model):
    """The money of an evaluation in one month, which begins on the day `month`: a row of `core.ledger`.

    From `spent_out_at` on nothing more is judged in this month.
    """

    evaluation = models.ForeignKey(OnlineEvaluation, on_delete=models.CASCADE, related_name="budgets")
    month = models.DateField()
    budget_usd = models.DecimalField(max_digits=20, decimal_places=10)
    spent_usd = models.DecimalField(max_digits=20, decimal_places=10, default=0)
    reserved_usd = models.DecimalField(max_digits=20, decimal_places=10, default=0)
    spent_out_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "month"], name="one_evaluation_budget_per_month"),
        ]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


class EvaluationTask(models.Model):
    """An answer that is due to be scored. The decision about the sample makes it, before any score.

    `due_at` is the end of the minute in which the request was recorded, a day later when users' feedback is awaited.
    `position` is the first 63 bits of the hash that decided. Tasks are judged in the order of both. `cost_usd` is the
    cost of all tries, with the reservations of workers that died.

    `label_due`, decided with the sample by `label_share`, says that a person is to label the answer. `label` is what
    the first person said, from 0 to 1, the best, and counts in the minute of `labelled_at`.

    The task of an erased request stays, because it is part of what was due. A random id replaces the request's.
    """

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    evaluation = models.ForeignKey(OnlineEvaluation, on_delete=models.CASCADE, related_name="tasks")
    version = models.ForeignKey(EvaluatorVersion, on_delete=models.CASCADE, related_name="+")
    request_id = models.UUIDField()
    is_erased = models.BooleanField(default=False, db_default=False)
    requested_at = models.DateTimeField()
    prompt_config_id = models.UUIDField(null=True)
    prompt_version = models.PositiveIntegerField(default=0)
    rollout_id = models.UUIDField(null=True)
    rollout_stage = models.PositiveSmallIntegerField(default=0)
    variant = models.CharField(max_length=20, blank=True, default="")
    due_at = models.DateTimeField()
    position = models.BigIntegerField()
    state = models.CharField(max_length=7, choices=TaskState, default=TaskState.DUE)
    reason = models.CharField(max_length=REASON_CHARACTERS, blank=True, default="")
    score = models.FloatField(null=True)
    label_due = models.BooleanField(default=False, db_default=False)
    label_share = models.FloatField(null=True)
    label = models.FloatField(null=True)
    labelled_at = models.DateTimeField(null=True)
    judge_model = models.CharField(max_length=JUDGE_MODEL_CHARACTERS, blank=True, default="")
    cost_usd = models.DecimalField(max_digits=20, decimal_places=10, default=0)
    tries = models.PositiveSmallIntegerField(default=0)
    ended_at = models.DateTimeField(null=True)
    # A task that was put back, or that waits for users, is not taken before this time.
    not_before = models.DateTimeField(null=True)
    # The worker that has the task, and until when without a sign of life of it.
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    # What is reserved for the try under way, and where.
    reserved_usd = models.DecimalField(max_digits=20, decimal_places=10, default=0)
    reserved_in = models.ForeignKey(EvaluationBudget, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "request_id"], name="one_evaluation_task_per_request"),
        ]
        indexes = [
            models.Index(fields=["due_at", "position"], condition=Q(state="due"), name="evaluation_tasks_due"),
            models.Index(fields=["claim"], condition=Q(claim__isnull=False), name="evaluation_tasks_claimed"),
            models.Index(fields=["evaluation", "state", "reason"], name="evaluation_tasks_by_end"),
            models.Index(fields=["evaluation", "ended_at"], name="evaluation_tasks_by_time"),
            models.Index(fields=["project", "request_id"], name="evaluation_tasks_of_request"),
            models.Index(fields=["project", "requested_at"], name="evaluation_tasks_by_request"),
            models.Index(
                fields=["rollout_id", "due_at"],
                condition=Q(rollout_id__isnull=False),
                name="evaluation_tasks_of_rollout",
            ),
            models.Index(
                fields=["project", "due_at"],
                condition=Q(label_due=True, labelled_at__isnull=True),
                name="evaluation_tasks_to_label",
            ),
            models.Index(
                fields=["rollout_id", "labelled_at"],
                condition=Q(rollout_id__isnull=False, labelled_at__isnull=False),
                name="evaluation_tasks_labelled",
            ),
        ]

    def __str__(self) -> str:
        return f"evaluation of {self.request_id}"
