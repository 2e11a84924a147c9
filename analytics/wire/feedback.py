from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypedDict, cast
from uuid import UUID

from rest_framework import serializers

from analytics.models import Feedback, Score


class ScoreEntry(TypedDict):
    id: UUID
    project_id: UUID
    score_id: str
    request_id: str
    score_name: str
    score_value: float
    score_type: Literal["number", "boolean", "category"]
    score_label: str
    reason: str | None
    evaluator_type: str
    judge_model: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    revision: int


class ScoreBatchResult(TypedDict):
    count: int
    created: int
    updated: int
    scores: list[ScoreEntry]


class ScoreSerializer(serializers.ModelSerializer[Score]):
    """Returns a ScoreEntry of the columns with the same names."""

    class Meta:
        model = Score
        fields = list(ScoreEntry.__annotations__)
        read_only_fields = fields


def score_entries(rows: Iterable[Score]) -> list[ScoreEntry]:
    return cast(list[ScoreEntry], ScoreSerializer(list(rows), many=True).data)


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
