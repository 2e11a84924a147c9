"""Simulates experiments whose truth is known, and shows how often each verdict comes.

The command is `python -m benchmarks.experiments --runs 2000`.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from dataclasses import dataclass
from statistics import fmean

from benchmarks.binomial import limits
from gateway.experiments.verdict import LOOK_EVERY, Courses, Rule, Verdict
from rollouts.evaluation.pairs import Pair

_MARGIN = 0.10
_BOTH_GOOD, _WON, _LOST = Pair(1.0, 1.0), Pair(1.0, 0.0), Pair(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class World:
    """`discordant` is the share of items whose answers differ; `loss` the share by which the target loses; `missing`
    the share of its scores that are missing. With `repeats` a pair has the means of so many answers."""

    items: int
    discordant: float
    loss: float
    evaluators: int = 1
    missing: float = 0.0
    repeats: int = 1

    def pair(self, rng: random.Random) -> Pair:
        pairs = [self._one(rng) for _ in range(self.repeats)]
        baseline = fmean(pair.baseline or 0.0 for pair in pairs)
        if any(pair.target is None for pair in pairs):
            return Pair(None, baseline)
        return Pair(fmean(pair.target or 0.0 for pair in pairs), baseline)

    def _one(self, rng: random.Random) -> Pair:
        if self.missing and rng.random() < self.missing:
            return Pair(None, 1.0)
        drawn = rng.random()
        if drawn < (self.discordant + self.loss) / 2:
            return _LOST
        return _WON if drawn < self.discordant else _BOTH_GOOD


WORLDS = (
    World(200, 0.10, 0.0),
    World(200, 0.20, 0.0),
    World(400, 0.10, 0.0),
    World(400, 0.20, 0.0),
    World(400, 0.20, 0.0, evaluators=3),
    World(400, 0.20, 0.10),
    World(400, 0.20, 0.15),
    World(400, 0.20, 0.0, missing=0.15),
    World(400, 0.20, 0.0, missing=0.30),
    World(400, 0.20, 0.0, repeats=3),
    World(400, 0.20, 0.10, repeats=3),
)


def run(world: World, rng: random.Random) -> tuple[Verdict, int]:
    names = [str(number) for number in range(world.evaluators)]
    courses = Courses({name: Rule() for name in names}, _MARGIN)
    for position in range(1, world.items + 1):
        courses.add(position, {name: world.pair(rng) for name in names})
        if position % LOOK_EVERY == 0 and courses.may_stop():
            return courses.verdict(), position
    return courses.verdict(), world.items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs: int = parser.parse_args().runs
    print(
        "| Items | Evaluators | Repeats | Discordant | Missing | Truly lower by | Passed | Worse | Items needed, mean |"
    )
    print(f"|{'---|' * 9}")
    for number, world in enumerate(WORLDS):
        rng = random.Random(number)
        ends = [run(world, rng) for _ in range(runs)]
        counts = Counter(verdict for verdict, _ in ends)
        passed, worse = (_share(counts[verdict], runs) for verdict in (Verdict.PASSED, Verdict.WORSE))
        print(
            f"| {world.items} | {world.evaluators} | {world.repeats} | {world.discordant:.0%} | {world.missing:.0%} "
            f"| {world.loss * 100:.0f} points "
            f"| {passed} | {worse} | {fmean(items for _, items in ends):.0f} |"
        )


def _share(count: int, runs: int) -> str:
    low, high = limits(count, runs)
    return f"{count / runs:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
