"""`python -m benchmarks.rollouts.segments` simulates rollouts whose target fails in one segment of the traffic only.

It counts in how many the segment is named before the target has half of the traffic, and in how many harmless ones any
segment is. Every request has a language, a length, a model, a key and the team of its key. Keys have languages of their
own, so that segments of different dimensions share requests. Requests are allocated at random, 60 a minute, through the
default stages; verdicts move the rollout.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.binomial import limits
from rollouts.evaluation import ArmCounts, Decision, MinuteCounts, Policy, advance, assess, at_stage, initial_state
from rollouts.evaluation.policy import CONTROLLED_WEIGHT
from rollouts.evaluation.segments import (
    SegmentArm,
    SegmentCounts,
    SegmentMinute,
    advance_segments,
    initial_segments,
    named_segments,
)
from rollouts.evaluation.verdict import decided
from rollouts.states import DEFAULT_STAGES

_RATE, _MINUTES = 60, 1440
_LANGUAGES = (0.5, 0.12, 0.1, 0.08, 0.06, 0.04, 0.03, 0.025, 0.02, 0.015, 0.01)
_LENGTHS = (0.35, 0.35, 0.2, 0.075, 0.025)
_MODELS = (0.6, 0.25, 0.1, 0.05)
_KEYS, _TEAMS = 20, 6
_OWN_LANGUAGE = 0.5
"""The share of a key's requests that are in the language of the key."""
_TILT = 2.0
"""Requests in every third language fail so many times as often, in both arms."""


@dataclass(frozen=True, slots=True)
class World:
    """The baseline leaves `errors` of its requests unanswered and breaks its schema in `broken` of the others; the
    target leaves `target_errors`, and all of the `segment` (dimension, value)."""

    errors: float = 0.05
    target_errors: float = 0.05
    broken: float = 0.0
    segment: tuple[str, str] | None = None


WORLDS = {
    "harmless": World(),
    "harmless, and answers break their schema": World(broken=0.03),
    "fails for a language": World(target_errors=0.025, segment=("language", "7")),
    "fails for long prompts": World(target_errors=0.025, segment=("length", "4")),
}
ACCEPTED = {
    "harmless": ("names a segment", 0.05),
    "harmless, and answers break their schema": ("names a segment", 0.05),
    "fails for a language": ("not named before 50 %", 0.10),
    "fails for long prompts": ("not named before 50 %", 0.10),
}
"""The share of runs that may have the event, by world."""


@dataclass(frozen=True, slots=True)
class Result:
    named: dict[tuple[str, str], tuple[int, int]]
    decision: str
    minutes: int

    def first_named(self, world: World) -> tuple[int, int] | None:
        return self.named.get(world.segment) if world.segment else None

    def breaks(self, world: World) -> bool:
        if world.segment is None:
            return bool(self.named)
        found = self.first_named(world)
        return found is None or found[0] >= CONTROLLED_WEIGHT


class _Requests:
    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self._world, self._rng = world, rng

    def minute(self, number: int, stage: int, weight: int) -> tuple[MinuteCounts, SegmentMinute]:
        rng, world = self._rng, self._world
        total = int(rng.poisson(_RATE))
        key = (rng.random(total) ** 2 * _KEYS).astype(int)
        language = rng.choice(len(_LANGUAGES), total, p=np.array(_LANGUAGES) / sum(_LANGUAGES))
        # The language of a key stands in for one of the common languages, so that the share of a rare one is kept.
        own = (rng.random(total) < _OWN_LANGUAGE) & (language < 4)
        language = np.where(own, key % 4, language)
        columns = {
            "language": language,
            "length": rng.choice(len(_LENGTHS), total, p=_LENGTHS),
            "model": rng.choice(len(_MODELS), total, p=_MODELS),
            "key": key,
            "metadata.team": key % _TEAMS,
        }
        target = rng.random(total) < weight / 100
        rates = np.where(target, world.target_errors, world.errors) * np.where(language % 3 == 1, _TILT, 1.0)
        unanswered = rng.random(total) < rates
        if world.segment is not None:
            dimension, value = world.segment
            unanswered |= target & (columns[dimension] == int(value))
        broken = ~unanswered & (rng.random(total) < world.broken)
        flags = (target, target & unanswered, target & broken, ~target, ~target & unanswered, ~target & broken)
        sums = [int(flag.sum()) for flag in flags]
        counts = MinuteCounts(number, stage, weight, _counts(_of(*sums[:3])), _counts(_of(*sums[3:])))
        found = [
            SegmentCounts(dimension, str(value), row[0] + row[3], _of(*row[:3]), _of(*row[3:]))
            for dimension, column in columns.items()
            for value, row in enumerate(
                zip(*(np.bincount(column[flag], minlength=_KEYS).tolist() for flag in flags), strict=True)
            )
            if row[0] + row[3]
        ]
        return counts, SegmentMinute(stage, total, found, total)


def _of(requests: int, unanswered: int, broken: int) -> SegmentArm:
    return SegmentArm(requests, unanswered, requests - unanswered, broken)


def _counts(arm: SegmentArm) -> ArmCounts:
    asked, bad, answered = arm.requests, arm.unanswered, arm.answered
    return ArmCounts(asked, bad, asked, bad, answered, contract=arm.contract, units=asked)


def simulate(world: World, seed: Sequence[int]) -> Result:
    """Simulates one rollout to its end, or for a day. The same seed gives the same run on any machine."""
    requests = _Requests(world, np.random.default_rng(seed))
    weights, policy = tuple(stage.weight for stage in DEFAULT_STAGES), Policy()
    state = initial_state(policy, latency={}, cost={}, weights=weights, sticky=False)
    segments = initial_segments(policy, weights)
    named: dict[tuple[str, str], tuple[int, int]] = {}
    index, started, decision = 0, 0, Decision.WAIT
    for minute in range(1, _MINUTES + 1):
        stage = DEFAULT_STAGES[index]
        counts, found = requests.minute(minute, index + 1, stage.weight)
        state, segments = advance(state, counts), advance_segments(segments, found)
        for one in named_segments(segments):
            named.setdefault(one.key, (stage.weight, state.target.requests))
        at = at_stage(state, index + 1)
        decision, _ = decided(at, assess(at), stage, elapsed_minutes=minute - started)
        if decision is Decision.ROLL_BACK:
            return Result(named, "rolled back", minute)
        if decision is Decision.PROMOTE:
            index, started = index + 1, minute
            if index == len(DEFAULT_STAGES):
                return Result(named, "completed", minute)
    return Result(named, f"at {DEFAULT_STAGES[index].weight} %", _MINUTES)


def _run(job: tuple[str, int, int]) -> Result:
    name, seed, number = job
    return simulate(WORLDS[name], (seed, number))


def run_all(runs: int, *, processes: int, seed: int) -> Iterator[tuple[str, list[Result]]]:
    with ProcessPoolExecutor(processes) as pool:
        for name in WORLDS:
            jobs = [(name, seed, number) for number in range(runs)]
            yield name, list(pool.map(_run, jobs, chunksize=5))


def row(name: str, results: Sequence[Result]) -> str:
    world, (event, allowed) = WORLDS[name], ACCEPTED[name]
    happened = sum(one.breaks(world) for one in results)
    low, high = limits(happened, len(results))
    ends = ", ".join(f"{end} {count}" for end, count in Counter(one.decision for one in results).most_common())
    found = sorted(first[1] for one in results if (first := one.first_named(world)))
    after = f"named after {found[len(found) // 2]} target requests (median)" if found else ""
    share = happened / len(results)
    return (
        f"| {name} | {event} | ≤ {allowed:.0%} | {share:.1%} | {low:.1%} to {high:.1%} | {len(results)} |"
        f" {'; '.join(filter(None, [after, ends]))} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="rollouts of each world")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| Target | Event | Accepted | Seen | 95 % limits | Runs | |\n|---|---|---|---|---|---|---|")
    for name, results in run_all(options.runs, processes=options.processes, seed=options.seed):
        print(row(name, results), flush=True)


if __name__ == "__main__":
    main()
