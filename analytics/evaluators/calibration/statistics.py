"""The figures of a calibration: confusion, sensitivity, specificity, kappa, bias, and evidence of drift. Pure.

A verdict is good or bad. Shares have Wilson's interval, kappa has Cohen's (`analytics.agreement`). The bias is the
difference of two paired shares, with the interval of Agresti and Min (2005); differences of two biases or two shares
combine the intervals by squares (Zou and Donner 2008). All intervals are 95 percent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from uuid import UUID

from analytics.agreement import Estimate, cohens_kappa, share_of

_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Answers of one kind: of version `name` of the prompt `scope`, or of arm `name` of the rollout `scope`.

    `place` is its order within the scope.
    """

    scope: UUID
    place: int
    name: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Both verdicts on one answer, which `model` gave. `version` and `arm` are None if the answer has none."""

    is_good_by_evaluator: bool
    is_good_by_person: bool
    version: Group | None = None
    arm: Group | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Confusion:
    """The number of answers by both verdicts. `true` means that the person agrees."""

    true_good: int
    false_good: int
    true_bad: int
    false_bad: int

    @property
    def answers(self) -> int:
        return self.true_good + self.false_good + self.true_bad + self.false_bad

    @property
    def sensitivity(self) -> Estimate | None:
        return share_of(self.true_good, self.true_good + self.false_bad)

    @property
    def specificity(self) -> Estimate | None:
        return share_of(self.true_bad, self.true_bad + self.false_good)

    @property
    def informedness(self) -> Estimate | None:
        """Sensitivity + specificity - 1, Youden's index: how much of a true difference the verdicts show."""
        return _difference(self.sensitivity, share_of(self.false_good, self.true_bad + self.false_good))

    @property
    def kappa(self) -> Estimate | None:
        cells = (
            (True, True, self.true_good),
            (True, False, self.false_good),
            (False, False, self.true_bad),
            (False, True, self.false_bad),
        )
        return cohens_kappa([(first, second) for first, second, count in cells for _ in range(count)])

    @property
    def bias(self) -> Estimate | None:
        """The share of answers that the evaluator calls good, minus the share that people call good."""
        count, high, low = self.answers, self.false_good, self.false_bad
        if not count:
            return None
        # Agresti and Min add half an answer to each cell, so that there is an interval without any disagreement.
        whole = count + 2
        middle = (high - low) / whole
        half = _Z * math.sqrt(((high + low + 1) / whole - middle**2) / whole)
        return Estimate((high - low) / count, max(-1.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True, slots=True)
class DifferentialBias:
    """The bias on answers of `second` minus that of `first`: the evaluator's own part of a comparison.

    `answers` counts those of the smaller group.
    """

    first: Group
    second: Group
    answers: int
    bias: Estimate


def confusion_of(verdicts: Iterable[Verdicts]) -> Confusion:
    counts = Counter((one.is_good_by_evaluator, one.is_good_by_person) for one in verdicts)
    return Confusion(
        true_good=counts[True, True],
        false_good=counts[True, False],
        true_bad=counts[False, False],
        false_bad=counts[False, True],
    )


def confusion_by_group(grouped: Iterable[tuple[Group | None, Verdicts]]) -> Mapping[Group, Confusion]:
    found: dict[Group, list[Verdicts]] = {}
    for group, verdicts in grouped:
        if group is not None:
            found.setdefault(group, []).append(verdicts)
    return {group: confusion_of(found[group]) for group in sorted(found)}


def differential_bias(by_group: Mapping[Group, Confusion]) -> DifferentialBias | None:
    """Compares two groups of one scope: the pair whose smaller group has the most answers. None if no scope has two."""
    pairs = [(first, second) for first, second in combinations(sorted(by_group), 2) if first.scope == second.scope]
    if not pairs:
        return None
    first, second = max(pairs, key=lambda pair: min(by_group[group].answers for group in pair))
    answers = min(by_group[first].answers, by_group[second].answers)
    bias = _difference(by_group[second].bias, by_group[first].bias)
    return None if bias is None else DifferentialBias(first, second, answers, bias)


def flip_evidence(*, to_good: int, to_bad: int) -> float:
    """Returns the e-value against a judge whose verdicts are equally likely to improve and to worsen.

    As in McNemar's test, only changed verdicts count; without drift half of them change each way. The value is the
    likelihood ratio of a share drawn evenly from 0 to 1 to a share of a half.
    """
    flips = to_good + to_bad
    log_choices = math.lgamma(flips + 1) - math.lgamma(to_good + 1) - math.lgamma(to_bad + 1)
    return math.exp(flips * math.log(2) - math.log(flips + 1) - log_choices)


def _difference(one: Estimate | None, other: Estimate | None) -> Estimate | None:
    bounds = _bounds([one, other])
    if one is None or other is None or bounds is None:
        return None
    (low, high), (other_low, other_high) = bounds
    value = one.value - other.value
    # Agresti and Min's interval need not have the value in its middle, so that each side has a width of its own.
    below = math.hypot(one.value - low, other_high - other.value)
    above = math.hypot(high - one.value, other.value - other_low)
    return Estimate(value, value - below, value + above)


def _bounds(estimates: Sequence[Estimate | None]) -> list[tuple[float, float]] | None:
    found = [(one.low, one.high) for one in estimates if one is not None]
    known = [(low, high) for low, high in found if low is not None and high is not None]
    return known if len(known) == len(estimates) else None
