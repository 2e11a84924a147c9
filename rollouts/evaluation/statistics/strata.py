"""Stratified sums: both arms compared under the same load, over minutes or blocks weighted by their information."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollouts.evaluation.statistics.grid import Histogram, WeightedHistogram, value_of
from rollouts.evaluation.statistics.margin import is_spell


@dataclass(frozen=True, slots=True)
class Strata:
    """Sums over minutes, each weighted by n_T n_B / (n_T + n_B), so that both arms are seen under the same load.

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
    """Rates over blocks, weighted as in `Strata` and by the share of both arms' requests that went well: a time in
    which both arms fail alike must not hide how they differ otherwise."""

    weight: float = 0.0
    target: float = 0.0
    baseline: float = 0.0

    def with_events(self, target: tuple[int, int], baseline: tuple[int, int]) -> AnsweredRates:
        (events, drawn), (others_events, others) = target, baseline
        if not drawn or not others:
            return self
        total = drawn + others
        well = 1 - (events + others_events) / total
        return AnsweredRates(
            self.weight + well * drawn * others / total,
            self.target + well * others / total * events,
            self.baseline + well * drawn / total * others_events,
        )

    def is_above(self, plus: float, times: float) -> bool:
        return (
            self.weight > 0
            and self.target - self.baseline >= plus * self.weight
            and self.target >= times * self.baseline
        )


@dataclass(frozen=True, slots=True)
class Answering:
    """The baseline's events and requests, each block's weighted by the share of both arms' requests that went well, as
    in `AnsweredRates`."""

    events: float = 0.0
    requests: float = 0.0

    def with_events(self, target: tuple[int, int], baseline: tuple[int, int]) -> Answering:
        (events, drawn), (others_events, others) = target, baseline
        if not others:
            return self
        well = 1 - (events + others_events) / (drawn + others)
        return Answering(self.events + well * others_events, self.requests + well * others)

    def is_spell(self, target: tuple[int, int], baseline: tuple[int, int]) -> bool:
        (events, drawn), (others_events, others) = target, baseline
        return is_spell(events + others_events, drawn + others, errors=self.events, requests=self.requests)


def with_events(strata: Strata, target: tuple[int, int], baseline: tuple[int, int]) -> Strata:
    (events, drawn), (others_events, others) = target, baseline
    return with_sums(strata, drawn, events, events, others, others_events, others_events)


def with_values(strata: Strata, target: Histogram, baseline: Histogram) -> Strata:
    return with_sums(strata, *moments(target), *moments(baseline))


def with_weights(before: WeightedHistogram, own: Histogram, other: Histogram) -> WeightedHistogram:
    drawn, others = sum(own.values()), sum(other.values())
    if not drawn or not others:
        return before
    share, after = others / (drawn + others), dict(before)
    for number, count in own.items():
        after[number] = after.get(number, 0.0) + share * count
    return after


def moments(histogram: Histogram, cap: float = math.inf) -> tuple[int, float, float]:
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
