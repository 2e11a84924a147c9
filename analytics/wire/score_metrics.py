"""The JSON of figures about scores and feedback."""

from __future__ import annotations

from datetime import date
from typing import Any, TypedDict
from uuid import UUID

from analytics.models import ScoreType
from analytics.queries.feedback import FeedbackDayRow
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


class FeedbackDay(TypedDict):
    date: date
    count: int
    text_count: int
    session_count: int
    mean_score: float | None
    scores: dict[str, int]


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


def feedback_day_entry(row: FeedbackDayRow) -> FeedbackDay:
    return {
        "date": row.day,
        "count": row.feedback,
        "text_count": row.texts,
        "session_count": row.sessions,
        "mean_score": row.mean,
        "scores": {str(score): count for score, count in enumerate(row.by_score, start=1)},
    }


def _known(value: Any) -> Any:
    if isinstance(value, UUID):
        return value if value.int else None
    return value or None
