"""The JSON of comments and assignments."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypedDict
from uuid import UUID

from analytics.models import Assignment, Comment
from analytics.models.discussions import Discussed, SubjectKind


class _About(TypedDict):
    """The request or session that the row is about; the other one is null."""

    request_id: UUID | None
    session_id: str | None


class CommentEntry(_About):
    id: UUID
    text: str | None
    mentions: list[str] | None
    created_by: str
    created_at: datetime
    edited_by: str
    edited_at: datetime | None


class AssignmentEntry(_About):
    id: UUID
    assignee: str
    state: Literal["open", "done"]
    assigned_by: str
    assigned_at: datetime
    done_by: str
    done_at: datetime | None


def comment_entry(row: Comment, *, sees_content: bool) -> CommentEntry:
    """Returns the entry of a comment; what people wrote is null for a reader without content."""
    return {
        "id": row.pk,
        **_about(row),
        "text": row.text if sees_content else None,
        "mentions": row.mentions if sees_content else None,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "edited_by": row.edited_by,
        "edited_at": row.edited_at,
    }


def assignment_entry(row: Assignment) -> AssignmentEntry:
    return {
        "id": row.pk,
        **_about(row),
        "assignee": row.assignee,
        "state": row.state,  # type: ignore[typeddict-item]  # the column holds one of AssignmentState
        "assigned_by": row.assigned_by,
        "assigned_at": row.assigned_at,
        "done_by": row.done_by,
        "done_at": row.done_at,
    }


def _about(row: Discussed) -> _About:
    is_request = row.kind == SubjectKind.REQUEST
    return {
        "request_id": UUID(row.subject) if is_request else None,
        "session_id": None if is_request else row.subject,
    }
