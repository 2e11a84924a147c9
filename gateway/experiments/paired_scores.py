from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from gateway.experiments.candidates import Candidate
from gateway.experiments.evaluators import ExperimentEvaluator
from gateway.experiments.verdict import Courses
from gateway.models import Experiment, ExperimentItem, ExperimentScore
from rollouts.evaluation.pairs import Pair

NO_SCORE = "no_score"
"""The reason for a score that there is no row of."""


@dataclass(frozen=True, slots=True)
class Reading:
    values: Sequence[float]
    reasons: Sequence[str]

    @property
    def mean(self) -> float | None:
        return fmean(self.values) if self.values and not self.reasons else None


@dataclass(frozen=True, slots=True)
class JudgedItem:
    position: int
    tags: Sequence[str]


class Readings:
    """The items up to a position and all their scores, read with two queries."""

    def __init__(self, experiment: Experiment, evaluators: Sequence[ExperimentEvaluator], there: int) -> None:
        items = ExperimentItem.objects.filter(experiment=experiment).order_by("position")
        self.items = [JudgedItem(*row) for row in items.values_list("position", "tags")[:there]]
        self._repeats = experiment.repeats
        self._scores: dict[tuple[int, int, int], list[tuple[float | None, str]]] = {}
        last = self.items[-1].position if self.items else 0
        rows = (
            ExperimentScore.objects.filter(
                answer__item__experiment=experiment, answer__item__position__lte=last, evaluator__lt=len(evaluators)
            )
            .order_by("answer__item__position", "answer__candidate", "answer__repeat")
            .values_list("answer__item__position", "answer__candidate", "evaluator", "value", "reason")
        )
        for position, candidate, evaluator, value, reason in rows.iterator():
            self._scores.setdefault((position, candidate, evaluator), []).append((value, reason))

    def of(self, item: JudgedItem, candidate: int, evaluator: int) -> Reading:
        found = self._scores.get((item.position, candidate, evaluator), [])
        values = [value for value, _ in found if value is not None]
        reasons = [reason or NO_SCORE for value, reason in found if value is None]
        return Reading(values, [*reasons, *[NO_SCORE] * (self._repeats - len(found))])


@dataclass(frozen=True, slots=True)
class ItemDifference:
    position: int
    difference: float
    pairs: Mapping[str, Pair]


class Target:
    def __init__(
        self,
        candidate: Candidate,
        place: int,
        baseline: int,
        evaluators: Sequence[ExperimentEvaluator],
        margin: float,
    ) -> None:
        self.candidate = candidate
        self.evaluators = evaluators
        self.courses = Courses({evaluator.title: evaluator for evaluator in evaluators}, margin)
        self.items = 0
        self.differences: list[ItemDifference] = []
        self.target_unscored: dict[str, Counter[str]] = {evaluator.title: Counter() for evaluator in evaluators}
        self.baseline_unscored: dict[str, Counter[str]] = {evaluator.title: Counter() for evaluator in evaluators}
        self._place, self._baseline = place, baseline

    def add(self, item: JudgedItem, readings: Readings) -> None:
        """Items must come in order."""
        pairs = {
            evaluator.title: self._pair(item, readings, number, evaluator)
            for number, evaluator in enumerate(self.evaluators)
        }
        self.courses.add(item.position, pairs, item.tags)
        self.items += 1
        known = [
            pair.target - pair.baseline
            for pair in pairs.values()
            if pair.target is not None and pair.baseline is not None
        ]
        if known:
            self.differences.append(ItemDifference(item.position, sum(known), pairs))

    def _pair(self, item: JudgedItem, readings: Readings, number: int, evaluator: ExperimentEvaluator) -> Pair:
        target = readings.of(item, self._place, number)
        self.target_unscored[evaluator.title].update(target.reasons)
        if evaluator.is_pairwise:
            # It says how often the target is the better one: by as much as it is above one half, the other is below.
            return Pair(target.mean, None if target.mean is None else 1 - target.mean)
        baseline = readings.of(item, self._baseline, number)
        self.baseline_unscored[evaluator.title].update(baseline.reasons)
        return Pair(target.mean, baseline.mean)
