"""The app's tables in the SQL database, and a model without a table for the admin's pages of the request log.

Scores and feedback are kept here, because they need transactions, and copied to ClickHouse (`analytics.scores.sync`).
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from analytics.models.dashboards import Chart as Chart
from analytics.models.dashboards import ChartKind as ChartKind
from analytics.models.dashboards import Dashboard as Dashboard
from analytics.models.datasets import Dataset as Dataset
from analytics.models.datasets import DatasetItem as DatasetItem
from analytics.models.datasets import DatasetVersion as DatasetVersion
from analytics.models.discussions import Assignment as Assignment
from analytics.models.discussions import Comment as Comment
from analytics.models.discussions import Mention as Mention
from analytics.models.evaluators import Evaluator as Evaluator
from analytics.models.evaluators import EvaluatorType as EvaluatorType
from analytics.models.evaluators import EvaluatorVersion as EvaluatorVersion
from analytics.models.online_evaluations import EvaluationBudget as EvaluationBudget
from analytics.models.online_evaluations import EvaluationTask as EvaluationTask
from analytics.models.online_evaluations import OnlineEvaluation as OnlineEvaluation
from analytics.models.reviews import ReviewItem as ReviewItem
from analytics.models.reviews import ReviewQueue as ReviewQueue
from analytics.models.trace_destinations import TraceDestination as TraceDestination
from analytics.models.trace_destinations import TraceDestinationStatus as TraceDestinationStatus
from core.models import Project
from core.tenancy import ProjectManager

SCORE_ID_CHARACTERS = 200
REQUEST_ID_CHARACTERS = 200
SCORE_NAME_CHARACTERS = 100
SCORE_LABEL_CHARACTERS = 100
EVALUATOR_CHARACTERS = 50
REASON_CHARACTERS = 10_000
JUDGE_MODEL_CHARACTERS = 200
SESSION_ID_CHARACTERS = 1024
END_USER_CHARACTERS = 1024
FEEDBACK_CHARACTERS = 10_000
ACTOR_CHARACTERS = 200
VIEW_NAME_CHARACTERS = 100
VIEW_QUERY_CHARACTERS = 4_000

MIN_FEEDBACK, MAX_FEEDBACK = 1, 5
BAD_FEEDBACK = (1, 2)

# A caller of the API that names no type of evaluator is taken for a program.
DEFAULT_EVALUATOR = EvaluatorType.CODE.value


class ScoreType(models.TextChoices):
    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"


class CopiedTable(models.TextChoices):
    SCORES = "scores"
    FEEDBACK = "feedback"


class Requests(models.Model):
    """The request log as the admin lists it. It has no table: the pages of `console.requests` query ClickHouse."""

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = "request"
        verbose_name_plural = "requests"

    def __str__(self) -> str:
        return "request log"


class Score(models.Model):
    """One evaluation of one request by a model, a program or a person.

    `request_id` is what the client sent: the request may not be in the store yet, or may not exist.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="scores")
    # The client's own name for this score, empty when it gave none. A score with the same name changes the stored one.
    score_id = models.CharField(max_length=SCORE_ID_CHARACTERS, blank=True, default="")
    request_id = models.CharField(max_length=REQUEST_ID_CHARACTERS)
    score_name = models.CharField(max_length=SCORE_NAME_CHARACTERS)
    score_value = models.FloatField()
    score_type = models.CharField(max_length=8, choices=ScoreType, default=ScoreType.NUMBER)
    score_label = models.CharField(max_length=SCORE_LABEL_CHARACTERS, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    evaluator_type = models.CharField(max_length=EVALUATOR_CHARACTERS, default=DEFAULT_EVALUATOR)
    # The model that answered as the judge; empty where none was asked or it is not known.
    judge_model = models.CharField(max_length=JUDGE_MODEL_CHARACTERS, blank=True, default="", db_default="")
    # The version of an evaluator that gave the score, whose name may change; null where only the score's name says it.
    evaluator_version_id = models.UUIDField(null=True, editable=False)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    # The revision is 1 at the score's creation and grows by one with each change.
    revision = models.PositiveIntegerField(default=1)
    # The time at which analytics.scores.sync looks at the row again; null when ClickHouse has it.
    copy_due_at = models.DateTimeField(null=True, default=timezone.now, editable=False)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "score_id"], condition=~Q(score_id=""), name="one_score_per_score_id"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "-created_at", "-id"], name="score_by_time"),
            models.Index(fields=["project", "request_id"], name="score_by_request"),
            models.Index(fields=["project", "score_name", "-created_at"], name="score_by_name"),
            models.Index(
                fields=["project", "evaluator_version_id", "-created_at"],
                condition=Q(evaluator_version_id__isnull=False),
                name="score_by_evaluator_version",
            ),
            models.Index(fields=["copy_due_at"], condition=Q(copy_due_at__isnull=False), name="score_to_copy"),
        ]

    def __str__(self) -> str:
        return f"{self.score_name} of {self.request_id}"


class Feedback(models.Model):
    """A person's feedback on a session or an answer: a rating of 1 to 5, a text, an edit before use, or several of
    these.

    Every piece is kept. The request may reach the store after the feedback. If it turns out to be another session's,
    the feedback no longer names it (`analytics.scores.sync`).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="feedback")
    session_id = models.CharField(max_length=SESSION_ID_CHARACTERS)
    # The SHA-256 of the session id, in hexadecimal: an id may be longer than an index of PostgreSQL takes.
    session_hash = models.CharField(max_length=64, editable=False)
    request_id = models.UUIDField(null=True, editable=False)
    # The SHA-256 of the request's id, empty without one: a deletion that is closed has kept nothing else of the id.
    request_hash = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    score = models.PositiveSmallIntegerField(null=True)
    text = models.TextField(blank=True, default="")
    edited = models.BooleanField(default=False, db_default=False)
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    copy_due_at = models.DateTimeField(null=True, default=timezone.now, editable=False)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "feedback"
        constraints = [
            models.CheckConstraint(
                condition=Q(score__isnull=True) | Q(score__range=(MIN_FEEDBACK, MAX_FEEDBACK)),
                name="feedback_score_1_to_5",
            ),
            models.CheckConstraint(
                condition=Q(score__isnull=False) | ~Q(text="") | Q(edited=True), name="feedback_says_something"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "session_hash", "-created_at"], name="feedback_by_session"),
            models.Index(fields=["project", "request_hash"], condition=~Q(request_hash=""), name="feedback_by_request"),
            models.Index(fields=["project", "-created_at"], name="feedback_by_time"),
            models.Index(fields=["copy_due_at"], condition=Q(copy_due_at__isnull=False), name="feedback_to_copy"),
        ]

    def __str__(self) -> str:
        return f"feedback on {self.session_id}"


class CopyWithdrawal(models.Model):
    """A score or a piece of feedback that was deleted here and may still be in ClickHouse.

    The three columns after `table` are its key there. The row has no foreign key, because it outlives the project.
    """

    table = models.CharField(max_length=8, choices=CopiedTable)
    project_id = models.UUIDField()
    row_id = models.UUIDField()
    row_created_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.table} {self.row_id}"


class RepairLease(models.Model):
    project_id = models.UUIDField(primary_key=True)
    holder = models.UUIDField(null=True)
    expires_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"repair of {self.project_id}"


class ListPage(models.TextChoices):
    REQUESTS = "requests"
    SESSIONS = "sessions"


class SavedView(models.Model):
    """Only its `owner` sees a view. `query` is the query of the list's address, without project and place in the
    list.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_views")
    owner = models.CharField(max_length=ACTOR_CHARACTERS)
    page = models.CharField(max_length=16, choices=ListPage)
    name = models.CharField(max_length=VIEW_NAME_CHARACTERS)
    query = models.CharField(max_length=VIEW_QUERY_CHARACTERS, blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["name", "id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["project", "owner", "page", "name"], name="one_view_per_name"),
        ]

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"


class DeletionKind(models.TextChoices):
    SESSION = "session"
    REQUEST = "request"
    ITEM = "item"  # An item of a data set.
    USER = "user"  # An end user of applications.


class DeletionState(models.TextChoices):
    """`pending` while data remains; `erased` when all is gone but late records may arrive; then `closed`."""

    PENDING = "pending"
    ERASED = "erased"
    CLOSED = "closed"


class Deletion(models.Model):
    """The deletion of a session, a request, a data set's item or an end user, stored before anything is deleted.

    `subject` is the id, kept only while records of it may still arrive, and so are the `sessions` of a user.
    `subject_hash` (SHA-256, hexadecimal) stays as proof that the id was deleted.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="deletions")
    kind = models.CharField(max_length=8, choices=DeletionKind)
    subject = models.CharField(max_length=SESSION_ID_CHARACTERS, blank=True)
    subject_hash = models.CharField(max_length=64)
    requested_by = models.CharField(max_length=ACTOR_CHARACTERS)
    requested_at = models.DateTimeField(default=timezone.now)
    state = models.CharField(max_length=8, choices=DeletionState, default=DeletionState.PENDING)
    # The number of requests made anonymous so far, over all attempts.
    requests = models.PositiveIntegerField(default=0)
    # Of an end user, the number of requests to make anonymous, counted when the deletion was requested.
    expected = models.PositiveIntegerField(null=True)
    sessions = models.JSONField(null=True, editable=False)
    looks = models.PositiveIntegerField(default=0)
    look_at = models.DateTimeField(null=True, default=timezone.now)
    erased_at = models.DateTimeField(null=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-requested_at", "-id"]
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["look_at"], condition=Q(look_at__isnull=False), name="deletion_to_look_at"),
            models.Index(fields=["project"], condition=Q(state="pending"), name="deletion_under_way"),
            models.Index(fields=["project", "subject_hash"], name="deletion_by_subject"),
        ]

    def __str__(self) -> str:
        return f"deletion of {self.kind} {self.subject or self.subject_hash[:12]}"


class DeletionBatch(models.Model):
    """Requests that are made anonymous together, stored before the first step so that every try has the same ones.

    The id is the token by which ClickHouse deduplicates their anonymous rows. `plan` has the form of
    `analytics.deletion.batches.Plan`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    deletion = models.ForeignKey(Deletion, on_delete=models.CASCADE, related_name="batches")
    plan = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"batch of {self.deletion_id}"


class DeletionReference(models.Model):
    """An id that requests name when they quote what a deletion erases; they are erased too.

    It is kept only while records of such requests may still arrive.
    """

    deletion = models.ForeignKey(Deletion, on_delete=models.CASCADE, related_name="references")
    reference = models.CharField(max_length=64)
    # No such request was made before.
    since = models.DateTimeField()
    # Until then the request log was searched; null for a reference that is new.
    searched_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["deletion", "reference"], name="one_reference_per_deletion"),
        ]

    def __str__(self) -> str:
        return f"reference of {self.deletion_id}"
