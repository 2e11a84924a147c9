from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from analytics.evaluators.calibration.statistics import Confusion
from rollouts.evaluation import Action
from rollouts.evaluation.quality import Evaluator

DAY, NINE_HOURS = 1440, 540
SENSITIVITY, SPECIFICITY = 0.9, 0.8
CALLED_GOOD = 0.9 * SENSITIVITY + 0.1 * (1 - SPECIFICITY)
TITLES = ("one", "two", "three")


class MissingBy(StrEnum):
    """What missing scores depend on: bad answers lack them more often; or only long inputs, or those of one language,
    which get worse answers than others."""

    OUTCOME = "outcome"
    LENGTH = "length"
    LANGUAGE = "language"


class People(StrEnum):
    """What people say of an answer: whether it is good; always that it is; what the judge says; or anything."""

    RIGHT = "right"
    CALL_ALL_GOOD = "call all good"
    REPEAT = "repeat the judge"
    GUESS = "guess"


@dataclass(frozen=True, slots=True)
class World:
    """The truth: a share `good` of the answers is good, minus `loss` for the target. A judge with the sensitivity and
    specificity above calls `bias` fewer of the target's answers good, and `drift` fewer of all by the end of a day.

    A share `missing` of the scores is missing, and `hidden` of the target's alone, bad answers first. The judge is
    `away` between two minutes. With `late` its scores take 5 minutes in the median, with a standard deviation of 2 of
    their logarithms. With `users` allocation is sticky by user, with an intraclass correlation of 0.2; `heavy` is the
    share of one user, half of whose good answers the judge calls bad. The busiest fifth of the users gets `busy` more
    good answers than the others.

    Each evaluator has its own judge for the same answers. The rollout has it `calibrated` by so many labels, or takes
    it for right if `trusted`; `rules` are right. With `metrics` the rollout is also judged by unanswered requests,
    errors, latency and cost, in which the arms do not differ. A `watched` world goes on when the target fails, and
    ends when it passes.
    """

    evaluators: int = 1
    rate: float = 60
    minutes: int = NINE_HOURS
    good: float = 0.9
    loss: float = 0.0
    bias: float = 0.0
    drift: float = 0.0
    missing: float = 0.0
    missing_by: MissingBy = MissingBy.OUTCOME
    hidden: float = 0.0
    away: tuple[int, int] | None = None
    late: bool = False
    users: int = 0
    heavy: float = 0.0
    busy: float = 0.0
    label_share: float | None = None
    people: People = People.RIGHT
    calibrated: int = 0
    trusted: bool = False
    rules: bool = False
    metrics: bool = False
    watched: bool = False

    @property
    def titles(self) -> tuple[str, ...]:
        return TITLES[: self.evaluators]

    def quality(self, rng: random.Random) -> list[Evaluator]:
        action = Action.HOLD if self.watched else Action.ROLL_BACK
        scale = self._scale(rng)
        return [
            Evaluator(title, action, required=True, label_share=self.label_share, margin_scale=scale)
            for title in self.titles
        ]

    def _scale(self, rng: random.Random) -> float | None:
        if self.rules or self.trusted:
            return 1.0
        if not self.calibrated:
            return None
        good = sum(rng.random() < 0.9 for _ in range(self.calibrated))
        bad = self.calibrated - good
        true_good, true_bad = (
            sum(rng.random() < right for _ in range(answers))
            for right, answers in ((SENSITIVITY, good), (SPECIFICITY, bad))
        )
        found = Confusion(true_good, bad - true_bad, true_bad, good - true_good).informedness
        return found.low if found is not None else None
