"""Answers and scores of earlier experiments, by their keys: what is there is not paid for again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from core.chunks import chunks
from gateway.models import ExperimentAnswer, ExperimentScore
from gateway.tables.experiment import AnswerState

COPIED = (
    "request_id", "provider", "model", "prompt_version", "answer", "finish_reason", "cost_usd", "latency_ms",
    "prompt_tokens", "completion_tokens", "warning", "score", "grades", "judge_error",
)  # fmt: skip


def kept_answers(keys: Iterable[str], *, graded: bool) -> dict[str, ExperimentAnswer]:
    """Returns by key the answers that succeeded and whose texts are there; `graded`: that have the judge's grades."""
    found = _kept().filter(key__in=[key for key in keys if key])
    if graded:
        found = found.filter(score__isnull=False)
    # Of several answers with one key it is always the first one, since scores are kept with their answer.
    return {answer.key: answer for answer in found.order_by("-pk")}


def copy_answer(kept: ExperimentAnswer, answer: ExperimentAnswer) -> None:
    """Gives an answer the outcome of an earlier one."""
    for name in COPIED:
        setattr(answer, name, getattr(kept, name))
    answer.reused = True


def kept_score(key: str) -> ExperimentScore | None:
    """Returns a score with this key."""
    return ExperimentScore.objects.filter(key=key, value__isnull=False).order_by("pk").first() if key else None


def count_kept(keys: Iterable[str]) -> int:
    """Returns of how many of the keys an answer is there."""
    wanted: Sequence[str] = [key for key in keys if key]
    return sum(_kept().filter(key__in=some).order_by().values("key").distinct().count() for some in chunks(wanted))


def _kept() -> QuerySet[ExperimentAnswer]:
    states = (AnswerState.ANSWERED, AnswerState.SCORING, AnswerState.DONE)
    return ExperimentAnswer.objects.filter(state__in=states, error_code="", answer__isnull=False).exclude(key="")
