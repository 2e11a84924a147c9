from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from analytics.models.datasets import DATASET_NAME_CHARACTERS
from core.models import Project
from core.tenancy import ProjectManager

NAME_CHARACTERS = 200
ACTOR_CHARACTERS = 200
REASON_CHARACTERS = 200
ERROR_CHARACTERS = 1000
# What an application may say of its own answer.
GIVEN_FIELDS = ("request_id", "model", "cost_usd", "latency_ms", "prompt_tokens", "completion_tokens")
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
    AWAITED = "awaited"  # The application has still to send it.
    PENDING = "pending"
    RUNNING = "running"
    ANSWERED = "answered"  # The answer, or its failure, is stored; scores are still due.
    SCORING = "scoring"
    DONE = "done"
    CANCELLED = "cancelled"


class Gone(models.TextChoices):
    ERASED = "erased"
    EXPIRED = "expired"


class ExperimentFailure(models.TextChoices):
    BUDGET = "budget"  # A budget or limit is spent: that of the project, of the key, or of the experiment.
    PROVIDER = "provider"  # Too many answers failed for reasons that will pass.
    TIMEOUT = "timeout"  # It did not end in time.


class AnswerFailure(models.TextChoices):
    REFUSED = "refused"  # For a reason that stays: the answer counts as a bad one.
    PASSING = "passing"  # For a reason that will pass: there is no score.
    UNUSABLE = "unusable"  # The item is at fault: there is no score.


class ExperimentVerdict(models.TextChoices):
    """What an experiment found about all its targets together: the worst of their verdicts."""

    PASSED = "passed"
    WORSE = "worse"
    UNDECIDED = "undecided"


class Experiment(models.Model):
    """`candidates` is a list as `gateway.experiments.candidates` writes it, in the order of their labels; `evaluators`
    is one as `gateway.experiments.evaluators` writes it.

    `filter` holds the parameters of the request log by which the items were selected; it is empty for the items of a
    data set or of a shadow.
    """

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
    # The data set may have been deleted since.
    dataset_id = models.UUIDField(null=True)
    dataset_name = models.CharField(max_length=DATASET_NAME_CHARACTERS, blank=True, default="", db_default="")
    dataset_version = models.PositiveIntegerField(default=0, db_default=0)
    # The rollout whose shadow it is, null for others. Its items come while it runs (`tables.shadow`).
    rollout_id = models.UUIDField(null=True)
    judge = models.BooleanField(default=False)
    evaluators = models.JSONField(default=list, db_default=[])
    repeats = models.PositiveSmallIntegerField(default=1, db_default=1)
    # The label of the candidate that the others are compared with; empty where there is no verdict.
    baseline = models.CharField(max_length=1, blank=True, default="", db_default="")
    # The largest loss of the mean score, between 0 and 1, that does no harm.
    margin = models.FloatField(default=0.1, db_default=0.1)
    # Whether answers and scores of earlier experiments are taken where candidate and input are the same.
    reuse = models.BooleanField(default=True, db_default=True)
    max_cost_usd = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    # What was spent, and what the requests under way may cost at most.
    spent_usd = models.DecimalField(max_digits=20, decimal_places=10, default=0, db_default=0)
    reserved_usd = models.DecimalField(max_digits=20, decimal_places=10, default=0, db_default=0)
    verdict = models.CharField(max_length=9, choices=ExperimentVerdict, blank=True, default="", db_default="")
    # The verdict on each target by label, and the report as `gateway.experiments.report` writes it.
    verdicts = models.JSONField(default=dict, db_default={})
    report = models.JSONField(null=True)
    stopped_early = models.BooleanField(default=False, db_default=False)
    # The number of answers that were done when it ended; a list counts them for the others.
    done_answers = models.PositiveIntegerField(null=True)
    # The items whose texts are deleted since, because their request was or because their retention was over.
    erased_items = models.PositiveIntegerField(default=0, db_default=0)
    expired_items = models.PositiveIntegerField(default=0, db_default=0)
    # The reason why an experiment ended before all answers were there.
    failure = models.CharField(max_length=1000, blank=True, default="")
    failure_code = models.CharField(max_length=20, choices=ExperimentFailure, blank=True, default="", db_default="")
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # Until then no other worker may take the experiment; the worker that has it moves the time on while it lives.
    claimed_until = models.DateTimeField(null=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["project", "-created_at"], name="experiments_of_project"),
            models.Index(fields=["dataset_id", "-created_at"], name="experiments_of_dataset"),
            models.Index(
                fields=["claimed_until", "created_at"],
                condition=Q(state__in=("pending", "running")),
                name="experiments_unfinished",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["rollout_id"], condition=Q(rollout_id__isnull=False), name="one_shadow_per_rollout"
            )
        ]

    def __str__(self) -> str:
        return self.name or f"experiment {self.pk}"

    @property
    def is_shadow(self) -> bool:
        return self.rollout_id is not None


class ExperimentItem(models.Model):
    """An input: a past request, or an item of a data set, which may have no request.

    `winner` is the label that a person picked, `tie`, or empty.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveSmallIntegerField()
    request_id = models.UUIDField(null=True)
    requested_at = models.DateTimeField(null=True)
    # The SHA-256 of the ids of the request and of its session, empty without one: what was deleted is known by these.
    request_hash = models.CharField(max_length=64, blank=True, default="", db_default="")
    session_hash = models.CharField(max_length=64, blank=True, default="", db_default="")
    dataset_item_id = models.UUIDField(null=True)
    tags = models.JSONField(default=list, db_default=[])
    preview = models.TextField(blank=True, default="")
    # The version that served the request; null and 0 without a managed prompt.
    prompt_config_id = models.UUIDField(null=True)
    prompt_version = models.PositiveIntegerField(default=0)
    winner = models.CharField(max_length=3, blank=True, default="")
    winner_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    # An item whose texts are gone keeps its figures.
    gone = models.CharField(max_length=7, choices=Gone, blank=True, default="", db_default="")

    class Meta:
        ordering = ["experiment_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "position"], name="one_experiment_item_per_position")
        ]
        indexes = [
            models.Index(fields=["request_hash"], condition=~Q(request_hash=""), name="experiment_item_by_request"),
            models.Index(fields=["session_hash"], condition=~Q(session_hash=""), name="experiment_item_by_session"),
            models.Index(
                fields=["dataset_item_id"],
                condition=Q(dataset_item_id__isnull=False),
                name="experiment_item_by_dataset",
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.position}"


class ExperimentAnswer(models.Model):
    """The answer of one candidate to one item.

    `request_id` is that of the experiment's own request; for a shadow's baseline, of the client's. `answer` is the
    message of the completion, `score` the mean of the judge's grades, and `grades` the grades with their reasons.

    `key` is the same for answers of one project that one candidate gives to one input, and empty if an answer is not
    used again. A `reused` answer was paid for by an earlier experiment, or by a client.
    """

    item = models.ForeignKey(ExperimentItem, on_delete=models.CASCADE, related_name="answers")
    candidate = models.PositiveSmallIntegerField()
    repeat = models.PositiveSmallIntegerField(default=1, db_default=1)
    key = models.CharField(max_length=64, blank=True, default="", db_default="")
    reused = models.BooleanField(default=False, db_default=False)
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
    failure = models.CharField(max_length=8, choices=AnswerFailure, blank=True, default="", db_default="")
    score = models.FloatField(null=True)
    grades = models.JSONField(null=True)
    judge_error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["item_id", "candidate", "repeat"]
        constraints = [
            models.UniqueConstraint(fields=["item", "candidate", "repeat"], name="one_experiment_answer_per_repeat"),
            # Two experiments that run at once do not both pay for one answer.
            models.UniqueConstraint(
                fields=["key"], condition=Q(state="running") & ~Q(key=""), name="one_running_answer_per_key"
            ),
        ]
        indexes = [models.Index(fields=["key"], condition=~Q(key=""), name="experiment_answer_by_key")]

    def __str__(self) -> str:
        return f"answer of {LABELS[self.candidate]}"


class ExperimentScore(models.Model):
    """An answer's score, from 0 to 1, by the evaluator at the place `evaluator` of its experiment.

    Without a `value`, `reason` says why. `detail` is the text of a judge. A pairwise evaluator scores the target's
    answers: 1 if it is better than the baseline's.

    `key` is the same for scores of one project that one evaluator gives to one answer; a `reused` score was paid for by
    an earlier experiment.
    """

    answer = models.ForeignKey(ExperimentAnswer, on_delete=models.CASCADE, related_name="scores")
    evaluator = models.PositiveSmallIntegerField()
    value = models.FloatField(null=True)
    reason = models.CharField(max_length=REASON_CHARACTERS, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    cost_usd = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    request_ids = models.JSONField(default=list)
    key = models.CharField(max_length=64, blank=True, default="")
    reused = models.BooleanField(default=False)
    scored_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["answer_id", "evaluator"]
        constraints = [
            models.UniqueConstraint(fields=["answer", "evaluator"], name="one_experiment_score_per_evaluator")
        ]
        indexes = [models.Index(fields=["key"], condition=~Q(key=""), name="experiment_score_by_key")]

    def __str__(self) -> str:
        return f"score {self.value}"
