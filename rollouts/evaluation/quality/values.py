"""What one task is worth: its score, or its score corrected by people's labels.

The correction is that of prediction-powered inference (arXiv 2301.09633, 2311.01453). A score j predicts the label of
its answer as f = c + g j. Of a share p of the tasks, chosen by hash, the label h is known, and y = f + (x/p) (h - f), x
being 1 for those and 0 for the others. Over the choice of x its mean is h, whatever the judge does and whatever c and g
are, so long as they are known before. They are the regression of the labels of earlier blocks, so y varies little where
the judge is good.

A missing value is anything between `low` and `high`. The target's is `low` where it might pass. Where it might fail and
labels are missing, both are taken in its favour, because people who leave out one kind of answers would otherwise leave
a part of the judge's bias uncorrected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rollouts.evaluation.quality.counts import Task
from rollouts.evaluation.quality.rules import Evaluator

MIN_LABELS = 20
"""The number of labelled tasks from which on they say how scores predict labels."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a task, or the mean of a user's. `known` tells whether it may count against the target."""

    low: float
    high: float
    known: bool = True

    @property
    def exact(self) -> bool:
        return self.known and self.low == self.high


MISSING = Value(0.0, 1.0, known=False)


@dataclass(frozen=True, slots=True)
class Prediction:
    """How a score predicts a label: between 0 and 1 for every score. `usual` stands for a missing score."""

    intercept: float = 0.25
    slope: float = 0.5
    usual: float = 0.75

    def of(self, score: float | None) -> float:
        return min(1.0, max(0.0, self.intercept + self.slope * (self.usual if score is None else score)))


@dataclass(frozen=True, slots=True)
class LabelSums:
    """Sums over the labelled tasks of both arms: their number, scores j and labels h."""

    number: int = 0
    scores: float = 0.0
    labels: float = 0.0
    scores_squared: float = 0.0
    products: float = 0.0

    def with_tasks(self, tasks: Iterable[Task]) -> LabelSums:
        pairs = labelled(tasks)
        if not pairs:
            return self
        return LabelSums(
            self.number + len(pairs),
            self.scores + math.fsum([score for score, _ in pairs]),
            self.labels + math.fsum([label for _, label in pairs]),
            self.scores_squared + math.fsum([score * score for score, _ in pairs]),
            self.products + math.fsum([score * label for score, label in pairs]),
        )

    @property
    def prediction(self) -> Prediction:
        if self.number < MIN_LABELS:
            return Prediction()
        score, label = self.scores / self.number, self.labels / self.number
        variance = self.scores_squared / self.number - score * score
        covariance = self.products / self.number - score * label
        slope = min(1.0, max(0.0, covariance / variance)) if variance > 1e-12 else 0.0
        return Prediction(min(1.0 - slope, max(0.0, label - slope * score)), slope, score)


def labelled(tasks: Iterable[Task]) -> list[tuple[float, float]]:
    return [
        (task.score, task.label)
        for task in tasks
        if task.label_due and task.score is not None and task.label is not None
    ]


def reach(evaluator: Evaluator, prediction: Prediction) -> float:
    if evaluator.label_share is None:
        return 1.0
    # Rounded up, because a bet that loses more than all has no logarithm.
    return (1 + prediction.slope * (1 - evaluator.label_share)) / evaluator.label_share * (1 + 1e-12)


def value_of(task: Task, evaluator: Evaluator, prediction: Prediction) -> Value:
    share = evaluator.label_share
    if share is None:
        return MISSING if task.score is None else Value(task.score, task.score)
    predicted = prediction.of(task.score)
    if not task.label_due:
        return Value(predicted, predicted)
    labels = (0.0, 1.0) if task.label is None else (task.label, task.label)
    low, high = (predicted + (label - predicted) / share for label in labels)
    return Value(low, high)


def mean_of(values: Sequence[Value]) -> Value:
    known = [value for value in values if value.known]
    if not known:
        return MISSING
    low, high = (math.fsum(ends) / len(known) for ends in zip(*[(one.low, one.high) for one in known], strict=True))
    return Value(low, high)
