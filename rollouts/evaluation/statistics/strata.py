"""Stratified sums: both arms compared under the same load, over minutes or blocks that are weighted by their
information."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollouts.evaluation.statistics.grid import Histogram, WeightedHistogram, value_of


@dataclass(frozen=True, slots=True)
class Strata:
    """Sums over minutes, each minute weighted by n_T n_B / (n_T + n_B), so that both arms are seen under the same load.

    `noise` is Σ weight² / n of the arm: times the variance of a value, it is the variance of the arm's sum.
    """

    weight: float = 0.0
    target: float = 0.0
    baseline: float = 0.0
    target_squared: float = 0.0
    baseline_squared: float = 0.0
    target_noise: float = 0.0
    baseline_noise: float = 0.0


@dataclass(frozen=True, slots=True)
class AnsweredRates:
    """The rates of both arms over blocks. Each block is weighted as in `Strata` and by the share of the requests of
    both arms that went well, so that a time in which both arms fail alike does not hide how they differ otherwise."""

    weight: float = 0.0
    target: float = 0.0
    baseline: float = 0.0

    def with_events(self, *, events: int, drawn: int, others_events: int, others: int) -> AnsweredRates:
        """Returns the rates after `events` of `drawn` requests of the target and `others_events` of `others` of the
        baseline."""
        total = drawn + others
        well = 1 - (events + others_events) / total
        return AnsweredRates(
            self.weight + well * drawn * others / total,
            self.target + well * others / total * events,
            self.baseline + well * drawn / total * others_events,
        )

    def is_above(self, plus: float, times: float) -> bool:
        """Returns whether the target's rate is higher by at least so much and at least so many times as high."""
        return (
            self.weight > 0
            and self.target - self.baseline >= plus * self.weight
            and self.target >= times * self.baseline
        )


def with_events(strata: Strata, *, events: int, drawn: int, others_events: int, others: int) -> Strata:
    """Returns the strata after `events` of `drawn` requests of the target and `others_events` of `others` of the
    baseline."""
    return with_sums(strata, drawn, events, events, others, others_events, others_events)


def with_values(strata: Strata, target: Histogram, baseline: Histogram) -> Strata:
    """Returns the strata after these values of both arms."""
    return with_sums(strata, *moments(target), *moments(baseline))


def with_weights(before: WeightedHistogram, own: Histogram, other: Histogram) -> WeightedHistogram:
    """Returns the weighted histogram after these values of one arm, weighted as in `Strata`."""
    drawn, others = sum(own.values()), sum(other.values())
    if not drawn or not others:
        return before
    share, after = others / (drawn + others), dict(before)
    for number, count in own.items():
        after[number] = after.get(number, 0.0) + share * count
    return after


def moments(histogram: Histogram, cap: float = math.inf) -> tuple[int, float, float]:
    """Returns the number, the sum and the sum of squares of values that are cut at `cap`."""
    number, total, squares = 0, 0.0, 0.0
    for bin_number in sorted(histogram):
        count, value = histogram[bin_number], min(value_of(bin_number), cap)
        number += count
        total += count * value
        squares += count * value * value
    return number, total, squares


def with_sums(
    before: Strata, drawn: int, total: float, squares: float, others: int, others_total: float, others_squares: float
) -> Strata:
    """Returns the strata after the number, the sum and the sum of squares of values of the target and the baseline."""
    if not drawn or not others:
        return before
    own_share, other_share = others / (drawn + others), drawn / (drawn + others)
    weight = drawn * own_share
    return Strata(
        weight=before.weight + weight,
        target=before.target + own_share * total,
        baseline=before.baseline + other_share * others_total,
        target_squared=before.target_squared + own_share * squares,
        baseline_squared=before.baseline_squared + other_share * others_squares,
        target_noise=before.target_noise + weight * own_share,
        baseline_noise=before.baseline_noise + weight * other_share,
    )
