"""Changes comments and assignments. Both are deleted with their request or session, or when its retention ends."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from analytics.discussions.errors import NotAssignableError, NotYourCommentError, TooManyCommentsError
from analytics.discussions.mentions import mentions_in, people_of
from analytics.discussions.selectors import get_assignment, get_comment, list_comments
from analytics.discussions.subject import Subject, time_of
from analytics.identifiers import id_hash
from analytics.models import Assignment, Comment, Mention
from analytics.models.discussions import AssignmentState, SubjectKind

logger = logging.getLogger("analytics.discussions")

MAX_COMMENTS = 500

_BOTH: tuple[type[Comment] | type[Assignment], ...] = (Comment, Assignment)


def add_comment(*, project_id: UUID, subject: Subject, text: str, actor: str) -> Comment:
    subject_at = time_of(project_id, subject)
    if list_comments(project_id, subject).count() >= MAX_COMMENTS:
        raise TooManyCommentsError(subject.kind, MAX_COMMENTS)
    with transaction.atomic():
        row = Comment.objects.create(
            project_id=project_id,
            subject=subject.id,
            subject_at=subject_at,
            text=text,
            created_by=actor,
            **subject.columns,
        )
        _mention(row)
    logger.info("comment.added comment_id=%s project_id=%s kind=%s actor=%s", row.pk, project_id, row.kind, actor)
    return row


def change_comment(
    *, project_id: UUID, comment_id: UUID, text: str, actor: str, is_administrator: bool = False
) -> Comment:
    row = _own(project_id, comment_id, actor, is_administrator=is_administrator)
    if text != row.text:
        row.text, row.edited_by, row.edited_at = text, actor, timezone.now()
        with transaction.atomic():
            row.save(update_fields=["text", "edited_by", "edited_at"])
            row.named.all().delete()
            _mention(row)
        logger.info("comment.changed comment_id=%s actor=%s", row.pk, actor)
    return row


def delete_comment(*, project_id: UUID, comment_id: UUID, actor: str, is_administrator: bool = False) -> None:
    _own(project_id, comment_id, actor, is_administrator=is_administrator).delete()
    logger.info("comment.deleted comment_id=%s actor=%s", comment_id, actor)


def _mention(row: Comment) -> None:
    names = mentions_in(row.project_id, row.text)
    Mention.objects.bulk_create(Mention(comment=row, username=name) for name in names)


def may_change(row: Comment, actor: str, *, is_administrator: bool) -> bool:
    """The actor must also have the right to edit in the project."""
    return is_administrator or row.created_by == actor


def assign(*, project_id: UUID, subject: Subject, assignee: str, actor: str) -> tuple[Assignment, bool]:
    """Opens an assignment or reopens the existing one; returns it, and whether it is new.

    Raises SubjectNotFoundError, NotAssignableError and the errors of the store.
    """
    subject_at = time_of(project_id, subject)
    _require_person(project_id, assignee)
    values = {
        "assignee": assignee,
        "state": AssignmentState.OPEN,
        "assigned_by": actor,
        "assigned_at": timezone.now(),
        "done_by": "",
        "done_at": None,
    }
    row, made = Assignment.objects.update_or_create(
        project_id=project_id,
        **subject.columns,
        defaults=values,
        create_defaults={**values, "subject": subject.id, "subject_at": subject_at},
    )
    logger.info("assignment.made assignment_id=%s project_id=%s actor=%s", row.pk, project_id, actor)
    return row, made


def change_assignment(
    *, project_id: UUID, assignment_id: UUID, actor: str, assignee: str = "", state: str = ""
) -> Assignment:
    """Empty values change nothing. Raises AssignmentNotFoundError and NotAssignableError."""
    with transaction.atomic():
        row = get_assignment(project_id, assignment_id)
        if assignee and assignee != row.assignee:
            _require_person(project_id, assignee)
            row.assignee, row.assigned_by, row.assigned_at = assignee, actor, timezone.now()
        if state and state != row.state:
            is_done = state == AssignmentState.DONE
            row.state = AssignmentState(state)
            row.done_by, row.done_at = (actor, timezone.now()) if is_done else ("", None)
        row.save()
    logger.info("assignment.changed assignment_id=%s state=%s actor=%s", row.pk, row.state, actor)
    return row


def delete_assignment(*, project_id: UUID, assignment_id: UUID, actor: str) -> None:
    get_assignment(project_id, assignment_id).delete()
    logger.info("assignment.deleted assignment_id=%s actor=%s", assignment_id, actor)


def delete_discussions_of(project_id: UUID, kind: SubjectKind, subjects: Iterable[UUID | str]) -> int:
    return delete_discussions_of_hashes(project_id, kind, [id_hash(str(subject)) for subject in subjects])


def delete_discussions_of_hashes(project_id: UUID, kind: SubjectKind, hashes: Iterable[str]) -> int:
    of_these = {"kind": kind, "subject_hash__in": list(hashes)}
    return sum(model.objects.for_project(project_id).filter(**of_these).delete()[0] for model in _BOTH)


def delete_discussions_before(project_id: UUID, moment: datetime) -> int:
    return sum(model.objects.for_project(project_id).filter(subject_at__lt=moment).delete()[0] for model in _BOTH)


def _own(project_id: UUID, comment_id: UUID, actor: str, *, is_administrator: bool) -> Comment:
    row = get_comment(project_id, comment_id)
    if not may_change(row, actor, is_administrator=is_administrator):
        raise NotYourCommentError
    return row


def _require_person(project_id: UUID, username: str) -> None:
    if not people_of(project_id).filter(username=username).exists():
        raise NotAssignableError
