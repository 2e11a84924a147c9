from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase

from analytics.discussions import services
from analytics.discussions.errors import AssignmentNotFoundError, CommentNotFoundError
from analytics.discussions.selectors import list_assignments
from analytics.discussions.subject import Subject
from analytics.models import Assignment
from analytics.models.discussions import AssignmentState
from console.discussions.panel import CommentForm, discussion_panel
from core.errors import ApplicationError
from core.resources.rows import get_or_raise
from core.roles import Right
from core.ui.edit import EditPage, Form, Record
from core.ui.pages import Visit
from core.ui.panels import Panel


class DiscussedPage(EditPage[Record, Form]):
    right = Right.EDIT
    # The comment that was sent, if it is not valid.
    comment: CommentForm | None = None

    def subject(self, record: Record) -> Subject:
        raise NotImplementedError

    def discussion(self, visit: Visit, record: Record) -> Panel:
        return discussion_panel(visit, self.subject(record), self.comment)

    def address(self, visit: Visit, record: Record) -> str:
        return visit.request.get_full_path()

    def fail(self, visit: Visit, record: Record, error: ApplicationError) -> HttpResponseBase:
        anchor = "" if visit.request.POST["action"] in ("delete", "queue") else "#panel-discussion"
        return visit.failed(error.message.removeprefix("assignee: "), self.address(visit, record) + anchor)

    def do_comment(self, visit: Visit, record: Record) -> HttpResponseBase:
        form = CommentForm(visit.request.POST)
        if not form.is_valid():
            return self._refused(visit, record, form)
        services.add_comment(**_whose(visit), subject=self.subject(record), text=form.cleaned_data["text"])
        return self._done(visit, record, "The comment is added.")

    def do_comment_change(self, visit: Visit, record: Record) -> HttpResponseBase:
        form = CommentForm(visit.request.POST)
        if not form.is_valid():
            return self._refused(visit, record, form)
        services.change_comment(**_whose(visit), **_comment(visit), text=form.cleaned_data["text"])
        return self._done(visit, record, "The comment is changed.")

    def do_comment_delete(self, visit: Visit, record: Record) -> HttpResponseBase:
        services.delete_comment(**_whose(visit), **_comment(visit))
        return self._done(visit, record, "The comment is deleted.")

    def do_assign(self, visit: Visit, record: Record) -> HttpResponseBase:
        assignee = visit.request.POST.get("assignee", "")
        row, _ = services.assign(**_whose(visit), subject=self.subject(record), assignee=assignee)
        return self._done(visit, record, f"It is assigned to {row.assignee}.")

    def do_assignment_delete(self, visit: Visit, record: Record) -> HttpResponseBase:
        services.delete_assignment(**_whose(visit), assignment_id=self._assignment(visit, record).pk)
        return self._done(visit, record, "Nobody looks after it any more.")

    def do_assignment_done(self, visit: Visit, record: Record) -> HttpResponseBase:
        return self._change_assignment(visit, record, AssignmentState.DONE, "It is done.")

    def do_assignment_open(self, visit: Visit, record: Record) -> HttpResponseBase:
        return self._change_assignment(visit, record, AssignmentState.OPEN, "It is open again.")

    def _change_assignment(self, visit: Visit, record: Record, state: AssignmentState, said: str) -> HttpResponseBase:
        services.change_assignment(**_whose(visit), assignment_id=self._assignment(visit, record).pk, state=state)
        return self._done(visit, record, said)

    def _assignment(self, visit: Visit, record: Record) -> Assignment:
        return get_or_raise(list_assignments(visit.project.pk, self.subject(record)), AssignmentNotFoundError)

    def _refused(self, visit: Visit, record: Record, form: CommentForm) -> HttpResponseBase:
        self.comment = form
        return self.again(visit, record, self.form(visit, record))

    def _done(self, visit: Visit, record: Record, said: str) -> HttpResponseBase:
        return visit.done(said, self.address(visit, record) + "#panel-discussion")


def _whose(visit: Visit) -> dict[str, Any]:
    return {"project_id": visit.project.pk, "actor": visit.actor}


def _comment(visit: Visit) -> Mapping[str, Any]:
    try:
        comment_id = UUID(visit.request.POST.get("comment", ""))
    except ValueError:
        raise CommentNotFoundError from None
    return {"comment_id": comment_id, "is_administrator": visit.may(Right.ADMINISTER)}
