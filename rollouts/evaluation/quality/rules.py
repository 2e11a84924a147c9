from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from rollouts.evaluation.statistics.mixture import VALUES_FIRST_SHARE
from rollouts.evaluation.terms import Action

QUALITY_ALPHA, UNSCORED_ALPHA = 0.007, 0.0005
"""The probability that a harmless target ever fails by its scores, of all evaluators together, or by scores that are
missing. They are what `policy.ALPHA` leaves of 5 %."""
QUALITY_FAILS_AT, UNSCORED_FAILS_AT = -math.log(QUALITY_ALPHA), -math.log(UNSCORED_ALPHA)
"""The ln E at which they fail."""

QUALITY_SIZE = 0.05
"""The smallest loss of the mean score that is worth acting on, in the units of people's labels."""
DEFAULT_MARGIN = 0.10
GOAL_MARGIN = 0.05
"""The smallest gain of an A/B test's goal that counts, unless the test says otherwise."""
MAX_MISSING_SHARE = 0.2
"""The share of pairs without both scores above which nothing passes."""
FIRST_SHARE = VALUES_FIRST_SHARE
"""The weight of the process that begins with the rollout (see `mixture`): a version whose answers are worse gives such
answers from its first request on."""


class Basis(StrEnum):
    SCORES = "scores"
    LABELS = "labels"
    OUTCOMES = "outcomes"


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A version of an evaluator in a rollout, or an outcome that the application sends: `is_outcome`.

    `margin` is the largest harmless loss of the mean score. With `label_share`, that share of its due tasks, chosen by
    hash, is also due for a person, and the labels correct its scores.

    `margin_scale`, for scores without labels, is how much of a true loss they show: 1 for rules, which are right by
    definition; for a judge, the lower limit of sensitivity + specificity - 1; None while unknown, when the target
    cannot pass.

    An outcome may be the `goal` of an A/B test; its margin is then the smallest gain that counts.
    """

    title: str
    action: Action = Action.HOLD
    margin: float = DEFAULT_MARGIN
    required: bool = False
    label_share: float | None = None
    margin_scale: float | None = 1.0
    is_outcome: bool = False
    goal: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise ValueError(f"margin: {self.margin} is not between 0 and 1")
        if self.label_share is not None and not 0 < self.label_share <= 1:
            raise ValueError(f"label_share: {self.label_share} is not above 0 and at most 1")
        if self.margin_scale is not None and not self.margin_scale <= 1:
            raise ValueError(f"margin_scale: {self.margin_scale} is above 1")

    @property
    def basis(self) -> Basis:
        if self.is_outcome:
            return Basis.OUTCOMES
        return Basis.SCORES if self.label_share is None else Basis.LABELS

    @property
    def scale(self) -> float | None:
        """The size of one point of people's labels in the units compared; None if unknown."""
        if self.label_share is not None:
            return 1.0
        return self.margin_scale if self.margin_scale is not None and self.margin_scale > 0 else None
