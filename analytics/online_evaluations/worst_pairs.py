from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from analytics.models import EvaluationTask
from analytics.models.online_evaluations import TaskState
from analytics.queries.variants import BASELINE, TARGET

SHOWN = 5
_CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    request_id: UUID
    requested_at: datetime
    score: float
    is_erased: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """Answers of both arms to requests of one minute, at the same place in the order of hashes.

    An erased answer has nothing to show.
    """

    target: ScoredAnswer
    baseline: ScoredAnswer

    @property
    def is_there(self) -> bool:
        return not (self.target.is_erased or self.baseline.is_erased)

    @property
    def difference(self) -> float:
        return self.target.score - self.baseline.score


def worst_pairs(rollout_id: UUID, version_id: UUID, *, limit: int = SHOWN) -> list[Pair]:
    """Returns the pairs with the largest losses, then the latest, among the 200 lowest scores of the target.

    `version_id` is the evaluator's.
    """
    done = _done(rollout_id, version_id)
    lowest = done.filter(variant=TARGET).order_by("score", "-due_at", "position")
    minutes = set(lowest.values_list("due_at", "rollout_stage")[:_CANDIDATES])
    pairs = _pairs(done.filter(_any_of(minutes)).order_by("due_at", "position", "pk")) if minutes else []
    worse = [pair for pair in pairs if pair.difference < 0 and pair.is_there]
    worse.sort(key=lambda pair: (pair.difference, -pair.target.requested_at.timestamp()))
    return worse[:limit]


def _done(rollout_id: UUID, version_id: UUID) -> QuerySet[EvaluationTask]:
    return EvaluationTask.objects.filter(
        rollout_id=rollout_id,
        version_id=version_id,
        evaluation__matched=True,
        state=TaskState.DONE,
        score__isnull=False,
    )


def _any_of(minutes: Iterable[tuple[datetime, int]]) -> Q:
    by_stage: dict[int, list[datetime]] = {}
    for due_at, stage in minutes:
        by_stage.setdefault(stage, []).append(due_at)
    found = Q()
    for stage, times in by_stage.items():
        found |= Q(rollout_stage=stage, due_at__in=times)
    return found


def _pairs(rows: Iterable[EvaluationTask]) -> list[Pair]:
    cells: dict[tuple[datetime, int], Mapping[str, dict[UUID, ScoredAnswer]]] = {}
    for row in rows:
        arms = cells.setdefault((row.due_at, row.rollout_stage), {TARGET: {}, BASELINE: {}})
        if row.variant in arms and row.score is not None:
            # Two online evaluations may have the same answer due.
            answer = ScoredAnswer(row.request_id, row.requested_at, row.score, row.is_erased)
            arms[row.variant].setdefault(row.request_id, answer)
    return [
        Pair(own, theirs)
        for arms in cells.values()
        for own, theirs in zip(arms[TARGET].values(), arms[BASELINE].values(), strict=False)
    ]
