"""The JSON of figures about scores and feedback."""

from __future__ import annotations

from datetime import date
from typing import Any, TypedDict
from uuid import UUID

from analytics.models import ScoreType
from analytics.queries import feedback
from analytics.queries.bad_ratings import BadRatings
from analytics.queries.feedback import FeedbackDayRow, FeedbackGroupRow, FeedbackSums
from analytics.queries.scores import GROUPINGS, ScoreFiguresRow


class LabelCount(TypedDict):
    label: str
    count: int


class ScoreFigures(TypedDict):
    score_name: str
    score_type: str
    count: int
    mean: float | None
    min: float | None
    max: float | None
    distribution: list[LabelCount] | None


class FeedbackFigures(TypedDict):
    """The figures of a UTC day, or with a grouping those of a group, whose `date` is null and which has the fields of
    its group beside these."""

    date: date | None
    count: int
    text_count: int
    edited_count: int
    session_count: int
    request_count: int
    mean_score: float | None
    scores: dict[str, int]


class BadRatingFigures(TypedDict):
    """`bad_rate` is `bad_count` of `answered_count`, null without any. The counts that begin with `open` are of
    requests that may still be rated in time."""

    prompt_config_id: UUID
    prompt_version: int
    answered_count: int
    bad_count: int
    bad_rate: float | None
    open_answered_count: int
    open_bad_count: int


def score_figures_entry(row: ScoreFiguresRow, group_by: str) -> dict[str, Any]:
    """Returns ScoreFigures and the fields of the group, which are null where the request is not known or has none."""
    group = row.group
    figures: ScoreFigures = {
        "score_name": group.score_name,
        "score_type": group.score_type,
        "count": group.scores,
        "mean": group.mean,
        "min": group.lowest,
        "max": group.highest,
        "distribution": None
        if group.score_type == ScoreType.NUMBER
        else [{"label": item.label, "count": item.scores} for item in row.labels],
    }
    return {**figures, **{name: _known(getattr(group, name)) for name in GROUPINGS[group_by]}}


def feedback_day_entry(row: FeedbackDayRow) -> FeedbackFigures:
    return _feedback_figures(row, row.day)


def feedback_group_entry(row: FeedbackGroupRow, group_by: str) -> dict[str, Any]:
    """Returns FeedbackFigures and the fields of the group, which are null where the request has none."""
    return {
        **_feedback_figures(row, None),
        **{name: _known(getattr(row, name)) for name in feedback.GROUPINGS[group_by]},
    }


def bad_rating_entry(row: BadRatings) -> BadRatingFigures:
    return {
        "prompt_config_id": row.prompt_config_id,
        "prompt_version": row.prompt_version,
        "answered_count": row.answered,
        "bad_count": row.bad,
        "bad_rate": row.bad / row.answered if row.answered else None,
        "open_answered_count": row.open_answered,
        "open_bad_count": row.open_bad,
    }


def _feedback_figures(row: FeedbackSums, day: date | None) -> FeedbackFigures:
    return {
        "date": day,
        "count": row.feedback,
        "text_count": row.texts,
        "edited_count": row.edited,
        "session_count": row.sessions,
        "request_count": row.requests,
        "mean_score": row.mean,
        "scores": {str(score): count for score, count in enumerate(row.by_score, start=1)},
    }


def _known(value: Any) -> Any:
    if isinstance(value, UUID):
        return value if value.int else None
    return value or None
