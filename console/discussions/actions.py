"""What the forms of the panel do: comments are added, changed and deleted, requests and sessions assigned."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import QueryDict

from analytics.discussions import services
from analytics.discussions.errors import AssignmentNotFoundError, CommentNotFoundError
from analytics.discussions.selectors import list_assignments
from analytics.discussions.subject import Subject
from analytics.models import Assignment
from analytics.models.discussions import AssignmentState
from console.discussions.panel import CommentForm
from core.errors import ApplicationError
from core.roles import Right
from core.ui.pages import Visit

_OF_COMMENTS = ("comment", "comment-change", "comment-delete")
_OF_ASSIGNMENTS = ("assign", "assignment-done", "assignment-open", "assignment-delete")
ACTIONS = frozenset({*_OF_COMMENTS, *_OF_ASSIGNMENTS})


def act(visit: Visit, subject: Subject) -> CommentForm | None:
    """Does what the form of the panel asks for, and leaves a message about it. Returns the form of a comment that is
    not valid. Raises PermissionDenied without the right to edit."""
    visit.require(Right.EDIT)
    given = visit.request.POST
    action = given.get("action", "")
    form = CommentForm(given)
    if action in ("comment", "comment-change") and not form.is_valid():
        return form
    try:
        if action in _OF_COMMENTS:
            done = _comment(visit, subject, action, form)
        else:
            done = _assign(visit, subject, action, given)
    except ApplicationError as error:
        messages.error(visit.request, error.message.removeprefix("assignee: "))
    else:
        messages.success(visit.request, done)
    return None


def _comment(visit: Visit, subject: Subject, action: str, form: CommentForm) -> str:
    project_id, actor = visit.project.pk, visit.actor
    if action == "comment":
        services.add_comment(project_id=project_id, subject=subject, text=form.cleaned_data["text"], actor=actor)
        return "The comment is added."
    comment_id, is_administrator = _comment_id(visit.request.POST), visit.may(Right.ADMINISTER)
    if action == "comment-delete":
        services.delete_comment(
            project_id=project_id, comment_id=comment_id, actor=actor, is_administrator=is_administrator
        )
        return "The comment is deleted."
    services.change_comment(
        project_id=project_id,
        comment_id=comment_id,
        text=form.cleaned_data["text"],
        actor=actor,
        is_administrator=is_administrator,
    )
    return "The comment is changed."


def _comment_id(given: QueryDict) -> UUID:
    try:
        return UUID(given.get("comment", ""))
    except ValueError:
        raise CommentNotFoundError from None


def _assign(visit: Visit, subject: Subject, action: str, given: QueryDict) -> str:
    project_id, actor = visit.project.pk, visit.actor
    if action == "assign":
        row, _ = services.assign(
            project_id=project_id, subject=subject, assignee=given.get("assignee", ""), actor=actor
        )
        return f"It is assigned to {row.assignee}."
    row = _assignment(visit, subject)
    if action == "assignment-delete":
        services.delete_assignment(project_id=project_id, assignment_id=row.pk, actor=actor)
        return "Nobody looks after it any more."
    state = AssignmentState.DONE if action == "assignment-done" else AssignmentState.OPEN
    services.change_assignment(project_id=project_id, assignment_id=row.pk, actor=actor, state=state)
    return "It is done." if state == AssignmentState.DONE else "It is open again."


def _assignment(visit: Visit, subject: Subject) -> Assignment:
    row = list_assignments(visit.project.pk, subject).first()
    if row is None:
        raise AssignmentNotFoundError
    return row
