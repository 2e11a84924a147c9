"""The JSON of comments and assignments, and the bodies and parameters of their requests."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

from rest_framework import serializers

from analytics.discussions.subject import Subject, subject_request, subject_session
from analytics.models import SESSION_ID_CHARACTERS, Assignment, Comment
from analytics.models.discussions import (
    COMMENT_CHARACTERS,
    USERNAME_CHARACTERS,
    AssignmentState,
    Discussed,
    SubjectKind,
)
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer
from core.wire.shown import shown_as


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
    hidden = {} if sees_content else {"text": None, "mentions": None}
    return shown_as(CommentEntry, row, **_about(row), **hidden)


def assignment_entry(row: Assignment) -> AssignmentEntry:
    return shown_as(AssignmentEntry, row, **_about(row))


def _about(row: Discussed) -> _About:
    is_request = row.kind == SubjectKind.REQUEST
    return {
        "request_id": UUID(row.subject) if is_request else None,
        "session_id": None if is_request else row.subject,
    }


_ACTOR_CHARACTERS = 200


class _SubjectFields(serializers.Serializer[Any]):
    request_id = serializers.UUIDField(required=False)
    session_id = serializers.CharField(required=False, trim_whitespace=False, max_length=SESSION_ID_CHARACTERS)

    @property
    def subject(self) -> Subject | None:
        """The request or session that is named; None for neither."""
        given = self.validated_data
        if "request_id" in given:
            return subject_request(given["request_id"])
        return subject_session(given["session_id"]) if "session_id" in given else None


class _SubjectBody(BodySerializer, _SubjectFields):
    """A body that names one request or one session."""

    is_needed = True

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "request_id" in attrs and "session_id" in attrs:
            raise serializers.ValidationError({"session_id": "Name a request or a session, not both."})
        if "request_id" not in attrs and "session_id" not in attrs:
            raise serializers.ValidationError({"request_id": "Name a request, or a session in session_id."})
        return attrs

    @property
    def named(self) -> Subject:
        subject = self.subject
        assert subject is not None, "validate() requires one"  # noqa: S101
        return subject


class _SubjectParameters(Parameters, _SubjectFields):
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "request_id" in attrs and "session_id" in attrs:
            raise serializers.ValidationError({"session_id": "Name a request or a session, not both."})
        return attrs


class CommentParameters(_SubjectParameters):
    created_by = serializers.CharField(required=False, max_length=_ACTOR_CHARACTERS)
    mentions = serializers.CharField(required=False, max_length=USERNAME_CHARACTERS)


class NewCommentSerializer(_SubjectBody):
    text = serializers.CharField(max_length=COMMENT_CHARACTERS)


class CommentTextSerializer(BodySerializer):
    text = serializers.CharField(max_length=COMMENT_CHARACTERS)


class AssignmentParameters(_SubjectParameters):
    assignee = serializers.CharField(required=False, max_length=USERNAME_CHARACTERS)
    state = serializers.ChoiceField(required=False, choices=AssignmentState.choices)


class NewAssignmentSerializer(_SubjectBody):
    assignee = serializers.CharField(max_length=USERNAME_CHARACTERS)


class AssignmentChangeSerializer(BodySerializer):
    """A body that names what changes; what it leaves out stays."""

    is_needed = True

    assignee = serializers.CharField(required=False, max_length=USERNAME_CHARACTERS)
    state = serializers.ChoiceField(required=False, choices=AssignmentState.choices)
