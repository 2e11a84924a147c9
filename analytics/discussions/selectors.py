from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from analytics.discussions.errors import AssignmentNotFoundError, CommentNotFoundError
from analytics.discussions.subject import Subject
from analytics.models import Assignment, Comment
from core.resources.rows import get_or_raise


def list_comments(
    project_id: UUID, subject: Subject | None = None, *, author: str = "", mentioned: str = ""
) -> QuerySet[Comment]:
    """Returns one subject's comments oldest first, all others latest first.

    `author` is an actor, `mentioned` a username; "" does not filter.
    """
    found = Comment.objects.for_project(project_id).order_by("-created_at", "-id").prefetch_related("named")
    if subject is not None:
        found = found.filter(**subject.columns).order_by("created_at", "id")
    if author:
        found = found.filter(created_by=author)
    return found.filter(named__username=mentioned) if mentioned else found


def get_comment(project_id: UUID, comment_id: UUID) -> Comment:
    return get_or_raise(Comment.objects.for_project(project_id), CommentNotFoundError, pk=comment_id)


def list_assignments(
    project_id: UUID, subject: Subject | None = None, *, assignee: str = "", state: str = ""
) -> QuerySet[Assignment]:
    given = {name: value for name, value in (("assignee", assignee), ("state", state)) if value}
    if subject is not None:
        given |= subject.columns
    return Assignment.objects.for_project(project_id).filter(**given).order_by("-assigned_at", "-id")


def get_assignment(project_id: UUID, assignment_id: UUID) -> Assignment:
    return get_or_raise(Assignment.objects.for_project(project_id), AssignmentNotFoundError, pk=assignment_id)
