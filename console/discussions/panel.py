from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from analytics.discussions.mentions import people_of, pieces_of
from analytics.discussions.selectors import list_assignments, list_comments
from analytics.discussions.services import may_change
from analytics.discussions.subject import Subject
from analytics.models import Assignment, Comment
from analytics.models.discussions import COMMENT_CHARACTERS, AssignmentState
from core.audit.actors import actor_names
from core.roles import Right
from core.ui.pages import Visit
from core.ui.panels import Panel

NAME = "discussion"
LIST = "assignments"

_MAX_PEOPLE = 500


class CommentForm(forms.Form):
    """Has ids of its own: the page has other forms with a field `text`."""

    text = forms.CharField(
        label="Write a comment",
        max_length=COMMENT_CHARACTERS,
        help_text="@name mentions a member.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="comment-%s")


@dataclass(frozen=True, slots=True)
class ShownComment:
    """`pieces` are the parts of the text, each with the address of the person it mentions or an empty text. A reader
    without content gets none."""

    row: Comment
    author: str
    editor: str
    pieces: list[tuple[str, str]]
    may_change: bool


def discussion_panel(visit: Visit, subject: Subject, form: CommentForm | None = None) -> Panel:
    """Shows an invalid `form` again, with what was typed."""

    def load() -> Mapping[str, Any]:
        return {
            "comments": _comments(visit, subject),
            "form": form or CommentForm(),
            "may_write": visit.may(Right.EDIT),
            "people": list(people_of(visit.project.pk)[:_MAX_PEOPLE]) if visit.may(Right.EDIT) else [],
            **assignment_context(visit, subject),
        }

    return Panel(NAME, "Comments", "discussions/panel.html", load)


def assignment_context(visit: Visit, subject: Subject) -> Mapping[str, Any]:
    row = list_assignments(visit.project.pk, subject).first()
    return {
        "assignment": row,
        "assignment_is_done": row is not None and row.state == AssignmentState.DONE,
        "assignment_by": _by(row),
        "assigned_list": visit.link_if_there(LIST, assignee=row.assignee) if row is not None else "",
    }


def _by(row: Assignment | None) -> str:
    actor = "" if row is None else row.done_by or row.assigned_by
    return actor_names([actor])[actor] if actor else ""


def _comments(visit: Visit, subject: Subject) -> list[ShownComment]:
    rows = list(list_comments(visit.project.pk, subject))
    names = actor_names([actor for row in rows for actor in (row.created_by, row.edited_by) if actor])
    may_write, is_administrator = visit.may(Right.EDIT), visit.may(Right.ADMINISTER)
    return [
        ShownComment(
            row,
            names[row.created_by],
            names.get(row.edited_by, ""),
            _pieces(visit, row),
            may_write and may_change(row, visit.actor, is_administrator=is_administrator),
        )
        for row in rows
    ]


def _pieces(visit: Visit, row: Comment) -> list[tuple[str, str]]:
    if not visit.sees_content:
        return []
    return [
        (piece, visit.link_if_there(LIST, assignee=name) if name else "")
        for piece, name in pieces_of(row.text, row.mentions)
    ]
