"""Reads comments and assignments, each within one project."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from analytics.discussions.errors import AssignmentNotFoundError, CommentNotFoundError
from analytics.discussions.subject import Subject
from analytics.models import Assignment, Comment


def list_comments(
    project_id: UUID, subject: Subject | None = None, *, author: str = "", mentioned: str = ""
) -> QuerySet[Comment]:
    """Returns comments, those of one subject the oldest first, any others the latest first. `author` is an actor,
    `mentioned` a username; empty ones are no filter."""
    found = Comment.objects.for_project(project_id).order_by("-created_at", "-id").prefetch_related("named")
    if subject is not None:
        found = found.filter(**subject.columns).order_by("created_at", "id")
    if author:
        found = found.filter(created_by=author)
    return found.filter(named__username=mentioned) if mentioned else found


def get_comment(project_id: UUID, comment_id: UUID) -> Comment:
    """Returns one comment. Raises CommentNotFoundError."""
    found = Comment.objects.for_project(project_id).filter(pk=comment_id).first()
    if found is None:
        raise CommentNotFoundError
    return found


def list_assignments(
    project_id: UUID, subject: Subject | None = None, *, assignee: str = "", state: str = ""
) -> QuerySet[Assignment]:
    """Returns assignments, the latest first; an empty `assignee` or `state` is no filter."""
    given = {name: value for name, value in (("assignee", assignee), ("state", state)) if value}
    if subject is not None:
        given |= subject.columns
    return Assignment.objects.for_project(project_id).filter(**given).order_by("-assigned_at", "-id")


def get_assignment(project_id: UUID, assignment_id: UUID) -> Assignment:
    """Returns one assignment. Raises AssignmentNotFoundError."""
    found = Assignment.objects.for_project(project_id).filter(pk=assignment_id).first()
    if found is None:
        raise AssignmentNotFoundError
    return found
