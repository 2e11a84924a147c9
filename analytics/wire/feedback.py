"""The JSON of feedback on sessions, and of the tokens with which browsers give it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, cast
from uuid import UUID

from rest_framework import serializers

from analytics.models import Feedback


class FeedbackEntry(TypedDict):
    id: UUID
    project_id: UUID
    session_id: str
    request_id: UUID | None
    score: int | None
    text: str | None
    edited: bool
    created_by: str
    created_at: datetime


class FeedbackToken(TypedDict):
    session_id: str
    request_id: UUID | None
    token: str
    expires_at: datetime


class FeedbackSerializer(serializers.ModelSerializer[Feedback]):
    """One piece of feedback; `text` is empty when there is none, `score` null. `request_id` is the request of the
    session whose answer it is about, null when it is about the session; `edited` says that this answer was changed
    before it was used."""

    class Meta:
        model = Feedback
        fields = list(FeedbackEntry.__annotations__)
        read_only_fields = fields


def feedback_entries(rows: Iterable[Feedback]) -> list[FeedbackEntry]:
    return cast(list[FeedbackEntry], FeedbackSerializer(list(rows), many=True).data)
