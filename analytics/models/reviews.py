from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

from core.models import Project
from core.tenancy import ProjectManager

QUEUE_NAME_CHARACTERS = 100
INSTRUCTIONS_CHARACTERS = 10_000
ACTOR_CHARACTERS = 200
USERNAME_CHARACTERS = 150
ARM_CHARACTERS = 60

_SCORE_NAME_CHARACTERS = 100


FIRST_OPINION, SECOND_OPINION = 1, 2
"""The opinion of the person who scores a request first, and that of a second one about the same."""


class QueueState(models.TextChoices):
    OPEN = "open"
    CLOSED = "closed"


class ItemState(models.TextChoices):
    """A skipped item has no score, and may be scored later."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"


class RubricKind(models.TextChoices):
    BOOLEAN = "boolean"
    NUMBER = "number"
    CATEGORY = "category"


class ReviewQueue(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="review_queues")
    name = models.CharField(max_length=QUEUE_NAME_CHARACTERS)
    # The parameters of `GET requests` that chose the requests, as texts by name.
    filter = models.JSONField(default=dict)
    sample_size = models.PositiveIntegerField()
    score_name = models.CharField(max_length=_SCORE_NAME_CHARACTERS)
    kind = models.CharField(max_length=8, choices=RubricKind)
    # The labels of a category, in the order of the keys 1 to 9; empty for other kinds.
    labels = models.JSONField(default=list, blank=True)
    # The bounds of a number, both included; null for other kinds.
    minimum = models.FloatField(null=True, blank=True)
    maximum = models.FloatField(null=True, blank=True)
    instructions = models.TextField(blank=True, default="")
    # The name of the scores that the agreement compares with; empty for those of `score_name`.
    compared_score_name = models.CharField(max_length=_SCORE_NAME_CHARACTERS, blank=True, default="")
    # The evaluator that the answers of people calibrate; null for none.
    evaluator = models.ForeignKey(
        "analytics.Evaluator", on_delete=models.SET_NULL, null=True, blank=True, related_name="review_queues"
    )
    # Its items are the answers that online evaluations of the evaluator have due for a person, as they become due.
    due_labels = models.BooleanField(default=False, db_default=False)
    state = models.CharField(max_length=6, choices=QueueState, default=QueueState.OPEN)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_review_queue_per_name")]
        indexes = [models.Index(fields=["project", "-created_at", "-id"], name="review_queue_by_time")]

    def __str__(self) -> str:
        return self.name

    @property
    def last_position(self) -> int:
        return self.items.aggregate(last=models.Max("position"))["last"] or 0

    def scaled(self, value: float) -> float:
        """Returns a person's answer on the evaluators' scale from 0 to 1."""
        if self.kind != RubricKind.NUMBER or self.minimum is None or self.maximum is None:
            return value
        return (value - self.minimum) / (self.maximum - self.minimum)


class ReviewItem(models.Model):
    """`ts` is the time of the request, `position` its place in the queue from 1.

    `opinion` says whether a first or a second person scores it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    queue = models.ForeignKey(ReviewQueue, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    request_id = models.UUIDField()
    opinion = models.PositiveSmallIntegerField(default=FIRST_OPINION, db_default=FIRST_OPINION)
    # Of a due label: the arm, which nobody who labels may see, and until when the label counts.
    arm = models.CharField(max_length=ARM_CHARACTERS, blank=True, default="", db_default="")
    counts_until = models.DateTimeField(null=True)
    ts = models.DateTimeField()
    state = models.CharField(max_length=7, choices=ItemState, default=ItemState.OPEN)
    # The username of the person whom the item is for; empty for everybody.
    assignee = models.CharField(max_length=USERNAME_CHARACTERS, blank=True, default="")
    # The actor who has the item open, until `claimed_until`.
    claimed_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    claimed_until = models.DateTimeField(null=True)
    reviewed_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    reviewed_at = models.DateTimeField(null=True)
    # The id of the score's row. It is no foreign key, because scores are deleted by the thousand.
    score_id = models.UUIDField(null=True)

    class Meta:
        ordering = ["position"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["queue", "request_id", "opinion"], name="one_review_item_per_opinion"),
            models.UniqueConstraint(fields=["queue", "position"], name="one_review_item_per_position"),
        ]
        indexes = [
            models.Index(fields=["queue", "state", "position"], name="review_item_by_state"),
            models.Index(fields=["request_id"], name="review_item_by_request"),
        ]

    def __str__(self) -> str:
        return f"{self.position} of {self.queue_id}"
