"""Simulates labels for a judge of known sensitivity and specificity: how often do the intervals hold the truth?

The command is `python -m benchmarks.calibration --runs 2000`.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from analytics.agreement import Estimate
from analytics.evaluators.calibration.statistics import (
    Group,
    Verdicts,
    confusion_by_group,
    confusion_of,
    differential_bias,
)
from benchmarks.binomial import limits

_VERSIONS = tuple(Group(UUID(int=1), number, str(number)) for number in (1, 2))
_FIGURES = ("sensitivity", "specificity", "kappa", "bias", "differential bias")


@dataclass(frozen=True, slots=True)
class World:
    """`labels` answers, half of each of two versions; the share `good` is good. The judge calls a good answer good with
    chance `sensitivity`, a bad one bad with chance `specificity`."""

    labels: int
    good: float
    sensitivity: float = 0.9
    specificity: float = 0.8

    def truth(self) -> Mapping[str, float]:
        agreed = self.good * self.sensitivity + (1 - self.good) * self.specificity
        called_good = self.good * self.sensitivity + (1 - self.good) * (1 - self.specificity)
        by_chance = self.good * called_good + (1 - self.good) * (1 - called_good)
        values = (
            self.sensitivity,
            self.specificity,
            (agreed - by_chance) / (1 - by_chance),
            called_good - self.good,
            0.0,
        )
        return dict(zip(_FIGURES, values, strict=True))

    def verdicts(self, rng: random.Random, number: int) -> Verdicts:
        is_good = rng.random() < self.good
        is_right = rng.random() < (self.sensitivity if is_good else self.specificity)
        return Verdicts(is_good == is_right, is_good, _VERSIONS[number % 2])


WORLDS = tuple(World(labels, good) for good in (0.5, 0.7, 0.9) for labels in (100, 200, 400))


def run(world: World, rng: random.Random) -> Mapping[str, Estimate | None]:
    drawn = [world.verdicts(rng, number) for number in range(world.labels)]
    confusion = confusion_of(drawn)
    difference = differential_bias(confusion_by_group((one.version, one) for one in drawn))
    values = (
        confusion.sensitivity,
        confusion.specificity,
        confusion.kappa,
        confusion.bias,
        None if difference is None else difference.bias,
    )
    return dict(zip(_FIGURES, values, strict=True))


def holds(estimate: Estimate | None, truth: float) -> bool:
    if estimate is None or estimate.low is None or estimate.high is None:
        return False
    return estimate.low <= truth <= estimate.high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs: int = parser.parse_args().runs
    print(f"| Labels | Good answers | {' | '.join(figure.capitalize() for figure in _FIGURES)} |")
    print("|---|---|" + "---|" * len(_FIGURES))
    for number, world in enumerate(WORLDS):
        rng, truth = random.Random(number), world.truth()
        held: Counter[str] = Counter()
        for _ in range(runs):
            held.update(figure for figure, found in run(world, rng).items() if holds(found, truth[figure]))
        shares = " | ".join(_share(held[figure], runs) for figure in _FIGURES)
        print(f"| {world.labels} | {world.good:.0%} | {shares} |")


def _share(count: int, runs: int) -> str:
    low, high = limits(count, runs)
    return f"{count / runs:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
