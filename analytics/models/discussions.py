from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

from core.models import Project
from core.tenancy import ProjectManager

COMMENT_CHARACTERS = 10_000
ACTOR_CHARACTERS = 200
USERNAME_CHARACTERS = 150
SUBJECT_CHARACTERS = 1024


class SubjectKind(models.TextChoices):
    REQUEST = "request"
    SESSION = "session"


class AssignmentState(models.TextChoices):
    OPEN = "open"
    DONE = "done"


class Discussed(models.Model):
    """A row about one request or session of a project.

    `subject` is its id, and `subject_hash` the id's SHA-256 in hexadecimal: a session's id may be too long for an index
    of PostgreSQL. `subject_at` decides when the row expires with its project's retention: the time of the request, or
    when the row about a session was made.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="%(class)ss")
    kind = models.CharField(max_length=7, choices=SubjectKind)
    subject = models.CharField(max_length=SUBJECT_CHARACTERS)
    subject_hash = models.CharField(max_length=64, editable=False)
    subject_at = models.DateTimeField()

    objects = ProjectManager()

    class Meta:
        abstract = True


class Comment(Discussed):
    text = models.TextField()
    created_by = models.CharField(max_length=ACTOR_CHARACTERS)
    created_at = models.DateTimeField(default=timezone.now)
    # The last change: empty and null for a comment that is as it was written.
    edited_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    edited_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "id"]
        default_permissions = ()
        indexes = [
            models.Index(fields=["project", "subject_hash", "created_at"], name="comment_by_subject"),
            models.Index(fields=["project", "-created_at"], name="comment_by_time"),
            models.Index(fields=["project", "subject_at"], name="comment_by_expiry"),
        ]

    def __str__(self) -> str:
        return f"comment on a {self.kind}"

    @property
    def mentions(self) -> list[str]:
        return [mention.username for mention in self.named.all()]


class Mention(models.Model):
    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="named")
    username = models.CharField(max_length=USERNAME_CHARACTERS)

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["comment", "username"], name="one_mention_in_a_comment")]
        indexes = [models.Index(fields=["username"], name="mention_by_name")]

    def __str__(self) -> str:
        return f"mention of {self.username}"


class Assignment(Discussed):
    assignee = models.CharField(max_length=USERNAME_CHARACTERS)
    state = models.CharField(max_length=4, choices=AssignmentState, default=AssignmentState.OPEN)
    assigned_by = models.CharField(max_length=ACTOR_CHARACTERS)
    assigned_at = models.DateTimeField(default=timezone.now)
    done_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-assigned_at", "-id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "subject_hash"], name="one_assignment_per_subject"),
        ]
        indexes = [
            models.Index(fields=["project", "assignee", "state", "-assigned_at"], name="assignment_by_person"),
            models.Index(fields=["project", "subject_at"], name="assignment_by_expiry"),
        ]

    def __str__(self) -> str:
        return f"assignment of a {self.kind}"
