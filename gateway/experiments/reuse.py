"""Answers and scores of earlier experiments, by their keys: what is there is not paid for again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from gateway.models import ExperimentAnswer, ExperimentScore
from gateway.tables.experiment import AnswerState

_KEYS_AT_ONCE = 500


def kept_answer(key: str) -> ExperimentAnswer | None:
    """Returns an answer with this key that succeeded and whose text is there."""
    return _kept().filter(key=key).order_by("pk").first() if key else None


def kept_score(key: str) -> ExperimentScore | None:
    """Returns a score with this key."""
    found = ExperimentScore.objects.filter(key=key, value__isnull=False) if key else ExperimentScore.objects.none()
    return found.order_by("pk").first()


def count_kept(keys: Iterable[str]) -> int:
    """Returns of how many of the keys an answer is there."""
    wanted: Sequence[str] = [key for key in keys if key]
    parts = (wanted[start : start + _KEYS_AT_ONCE] for start in range(0, len(wanted), _KEYS_AT_ONCE))
    return sum(_kept().filter(key__in=part).order_by().values("key").distinct().count() for part in parts)


def _kept() -> QuerySet[ExperimentAnswer]:
    states = (AnswerState.ANSWERED, AnswerState.SCORING, AnswerState.DONE)
    return ExperimentAnswer.objects.filter(state__in=states, error_code="", answer__isnull=False).exclude(key="")
