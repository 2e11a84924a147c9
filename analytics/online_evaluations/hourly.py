from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, F, FloatField, QuerySet, Sum
from django.db.models.functions import TruncHour

from analytics.evaluators.selectors import title_of
from analytics.models import EvaluationTask
from analytics.models.online_evaluations import TaskState


@dataclass(frozen=True, slots=True)
class ScoreSource:
    """Scores that can be compared: of one online evaluation, by one version of its evaluator and one judge's model.
    `title` is `evaluator@version`."""

    evaluation_id: UUID
    version_id: UUID
    judge_model: str
    title: str


@dataclass(frozen=True, slots=True)
class HourOfScores:
    began_at: datetime
    number: int
    total: float
    squares: float


@dataclass(frozen=True, slots=True)
class ScoredVersion:
    """A version of a prompt in the requests from `start` up to, not including, `end`."""

    project_id: UUID
    config_id: UUID
    number: int
    start: datetime
    end: datetime


def score_sources(scored: ScoredVersion) -> list[ScoreSource]:
    """Returns for each version of an evaluator the source of most of its scores.

    Matched samples are left out: they end with the rollout.
    """
    rows = (
        _done(scored)
        .filter(evaluation__matched=False)
        .values_list("evaluation_id", "version_id", "judge_model", "version__evaluator__name", "version__number")
        .annotate(found=Count("id"))
        .order_by("-found", "evaluation_id", "judge_model")
    )
    sources: dict[UUID, ScoreSource] = {}
    for evaluation_id, version_id, judge_model, name, number, _ in rows:
        sources.setdefault(version_id, ScoreSource(evaluation_id, version_id, judge_model, title_of(name, number)))
    return sorted(sources.values(), key=lambda one: one.title)


def hourly_scores(scored: ScoredVersion, sources: Iterable[ScoreSource]) -> Mapping[ScoreSource, list[HourOfScores]]:
    return {source: _hours(scored, source) for source in sources}


def _hours(scored: ScoredVersion, source: ScoreSource) -> list[HourOfScores]:
    rows = (
        _done(scored)
        .filter(evaluation_id=source.evaluation_id, version_id=source.version_id, judge_model=source.judge_model)
        .annotate(hour=TruncHour("requested_at"))
        .values_list("hour")
        .annotate(number=Count("id"), total=Sum("score"), squares=Sum(F("score") ** 2, output_field=FloatField()))
        .order_by("hour")
    )
    return [HourOfScores(hour, number, total, squares) for hour, number, total, squares in rows]


def _done(scored: ScoredVersion) -> QuerySet[EvaluationTask]:
    return EvaluationTask.objects.filter(
        project_id=scored.project_id,
        requested_at__gte=scored.start,
        requested_at__lt=scored.end,
        prompt_config_id=scored.config_id,
        prompt_version=scored.number,
        state=TaskState.DONE,
        score__isnull=False,
    )
