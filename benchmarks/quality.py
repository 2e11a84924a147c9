"""Simulates the scores of rollouts whose truth is known: how often do they fail or pass a target?

The command is `python -m benchmarks.quality --runs 2000`. Minutes are handed over as if all their tasks had ended at
once: real verdicts come later by the slowest task, and are the same.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

from analytics.evaluators.calibration.statistics import Confusion
from benchmarks.binomial import limits
from rollouts.evaluation import Action, Status
from rollouts.evaluation.quality import (
    ArmTasks,
    Evaluator,
    EvaluatorTasks,
    QualityMinute,
    Task,
    advance_quality,
    assess_quality,
    initial_quality,
)
from rollouts.evaluation.quality.blocks import cluster_sums
from rollouts.evaluation.users import FIRST_REQUESTS
from rollouts.states import DEFAULT_STAGES

_DAY, _NINE_HOURS = 1440, 540
_MAX_PAIRS = 10
"""The tasks of each arm that are sampled in a minute."""
_SENSITIVITY, _SPECIFICITY = 0.9, 0.8
_CALLED_GOOD = 0.9 * _SENSITIVITY + 0.1 * (1 - _SPECIFICITY)
_PATIENCE = 15
_TITLES = ("one", "two", "three")


@dataclass(frozen=True, slots=True)
class World:
    """Answers of which `good` are good, of the target `loss` fewer. A judge with the sensitivity and specificity above
    calls `bias` fewer of the target's answers good, and by the end of a day `drift` fewer of all.

    A share of `missing` scores is missing, of bad answers first; `hidden` of the target's alone, of bad answers first.
    The judge is `away` between two minutes, and with `late` its scores take 5 minutes in the median, with a standard
    deviation of 2 of their logarithms. With `users` allocation is sticky by user, with an intraclass correlation of
    0.2; `heavy` is the share of one user, of whom the judge calls half of the good answers bad.

    A world that is `watched` goes on when the target fails, and ends when it passes.
    """

    evaluators: int = 1
    rate: float = 60
    minutes: int = _NINE_HOURS
    good: float = 0.9
    loss: float = 0.0
    bias: float = 0.0
    drift: float = 0.0
    missing: float = 0.0
    hidden: float = 0.0
    away: tuple[int, int] | None = None
    late: bool = False
    users: int = 0
    heavy: float = 0.0
    label_share: float | None = None
    calibrated: int = 0
    watched: bool = False

    def rules(self, rng: random.Random) -> list[Evaluator]:
        scale = self._scale(rng) if self.calibrated else None
        action = Action.HOLD if self.watched else Action.ROLL_BACK
        return [
            Evaluator(title, action, required=True, label_share=self.label_share, margin_scale=scale)
            for title in _TITLES[: self.evaluators]
        ]

    def _scale(self, rng: random.Random) -> float | None:
        """Returns the lower limit that a calibration with so many labels would find."""
        good = sum(rng.random() < 0.9 for _ in range(self.calibrated))
        bad = self.calibrated - good
        true_good, true_bad = (
            sum(rng.random() < right for _ in range(answers))
            for right, answers in ((_SENSITIVITY, good), (_SPECIFICITY, bad))
        )
        found = Confusion(true_good, bad - true_bad, true_bad, good - true_good).informedness
        return found.low if found is not None else None


@dataclass(slots=True)
class Run:
    """What happened: the pairs of the first evaluator when a run failed, and the tasks of each arm when missing scores
    held it."""

    failed_pairs: int | None = None
    unscored_tasks: int | None = None
    passed: bool = False
    completed_minute: int | None = None
    minutes: int = 0


@dataclass(slots=True)
class _Person:
    place: float
    good: float
    targeted: bool = False
    stage: int = 0
    first: list[list[Task]] = field(default_factory=list)


class _Traffic:
    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng
        self._people: list[_Person] = []
        self._activity: list[float] = []
        shape = 4.0
        for _ in range(world.users):
            chance = rng.betavariate(world.good * shape, (1 - world.good) * shape)
            self._people.append(_Person(rng.random(), chance))
            self._activity.append(rng.paretovariate(1.3))
        if world.heavy:
            self._activity[0] = sum(self._activity[1:]) * world.heavy / (1 - world.heavy)
            self._people[0].place = 0.09
        self._sums: list[list[dict[int, list[float]]]] = [[{}, {}] for _ in range(world.evaluators)]

    def minute(self, minute: int, stage: int, weight: int) -> tuple[int, QualityMinute]:
        """Returns the number of the target's requests, and the tasks."""
        rng, world = self._rng, self._world
        number = _poisson(world.rate, rng)
        arms: tuple[list[int], list[int]] = ([], [])
        if world.users:
            for user in rng.choices(range(world.users), self._activity, k=number):
                arms[self._people[user].place >= weight / 100].append(user)
        else:
            for _ in range(number):
                arms[rng.random() >= weight / 100].append(-1)
        drawn = min(len(arms[0]), len(arms[1]), _MAX_PAIRS)
        chosen = [rng.sample(arm, drawn) for arm in arms]
        tasks: list[tuple[list[Task], list[Task]]] = [([], []) for _ in range(world.evaluators)]
        new: list[tuple[list[tuple[Task, ...]], list[tuple[Task, ...]]]] = [([], []) for _ in range(world.evaluators)]
        for arm, users in enumerate(chosen):
            for user in users:
                made = self._tasks(minute, arm, user)
                for place, task in enumerate(made):
                    tasks[place][arm].append(task)
                if world.users:
                    self._note(made, arm, user, stage, new)
        basis = Evaluator("", label_share=world.label_share).basis
        evaluators = {}
        for place, title in enumerate(_TITLES[: world.evaluators]):
            sums = [cluster_sums(list(users.values())) for users in self._sums[place]] if world.users else [None, None]
            target, baseline = (ArmTasks(tuple(tasks[place][arm]), tuple(new[place][arm]), sums[arm]) for arm in (0, 1))
            evaluators[title] = EvaluatorTasks(target, baseline)
        return len(arms[0]), QualityMinute(minute, stage, basis, evaluators)

    def _tasks(self, minute: int, arm: int, user: int) -> list[Task]:
        world, rng = self._world, self._rng
        chance = self._people[user].good if world.users else world.good
        good = rng.random() < chance - (world.loss if arm == 0 else 0.0)
        flips = world.drift * minute / _DAY / _CALLED_GOOD
        if arm == 0:
            flips += world.bias / (_CALLED_GOOD if world.bias > 0 else 1 - _CALLED_GOOD)
        flips = 0.5 if world.heavy and user == 0 else flips
        return [self._task(minute, arm, user, good, flips) for _ in range(world.evaluators)]

    def _task(self, minute: int, arm: int, user: int, good: bool, flips: float) -> Task:
        world, rng = self._world, self._rng
        called = rng.random() < (_SENSITIVITY if good else 1 - _SPECIFICITY)
        if rng.random() < abs(flips):
            called = flips < 0
        due = world.label_share is not None and rng.random() < world.label_share
        score = None if self._is_missing(minute, arm, good) else float(called)
        return Task(rng.getrandbits(48), score, due, float(good) if due else None, user if world.users else None)

    def _is_missing(self, minute: int, arm: int, good: bool) -> bool:
        world, rng = self._world, self._rng
        if world.away and world.away[0] <= minute < world.away[1]:
            return True
        if world.late and rng.lognormvariate(math.log(5), 2) > _PATIENCE:
            return True
        share = world.missing + (world.hidden if arm == 0 else 0.0)
        if not share:
            return False
        bad = 1 - world.good + (world.loss if arm == 0 else 0.0)
        of_bad = min(1.0, share / bad) if world.hidden else min(1.0, 2 * share)
        of_good = max(0.0, (share - of_bad * bad) / (1 - bad))
        return rng.random() < (of_good if good else of_bad)

    def _note(
        self, made: Sequence[Task], arm: int, user: int, stage: int, new: Sequence[Sequence[list[tuple[Task, ...]]]]
    ) -> None:
        person = self._people[user]
        if person.stage != stage:
            person.stage = stage
            # Who was in the target before the stage does not count in it.
            person.first = [] if person.targeted else [[] for _ in made]
            person.targeted = person.targeted or arm == 0
        for place, task in enumerate(made):
            if task.score is not None:
                self._sums[place][arm].setdefault(user, []).append(task.score)
            if person.first and len(person.first[place]) < FIRST_REQUESTS:
                person.first[place].append(task)
                if len(person.first[place]) == FIRST_REQUESTS:
                    new[place][arm].append(tuple(person.first[place]))


def _poisson(mean: float, rng: random.Random) -> int:
    number, left = 0, rng.expovariate(1.0)
    while left < mean:
        number, left = number + 1, left + rng.expovariate(1.0)
    return number


def simulate(world: World, seed: str) -> Run:
    rng = random.Random(seed)
    state = initial_quality(world.rules(rng), weights=[one.weight for one in DEFAULT_STAGES], sticky=world.users > 0)
    traffic, run, index, started, requests = _Traffic(world, rng), Run(), 0, 0, 0
    for minute in range(1, world.minutes + 1):
        stage = DEFAULT_STAGES[index]
        if stage.weight >= 100:
            run.completed_minute = minute + stage.min_duration_minutes
            break
        more, counts = traffic.minute(minute, index + 1, stage.weight)
        requests += more
        run.minutes = minute
        state = advance_quality(state, counts)
        found = assess_quality(state)
        one = state.of("one")
        run.passed = run.passed or not found.required
        if found.unscored and run.unscored_tasks is None:
            run.unscored_tasks = max(one.target.due, one.baseline.due)
        if found.action is Action.ROLL_BACK and run.failed_pairs is None:
            run.failed_pairs = one.pairs
            break
        if run.passed and world.watched:
            break
        met = minute - started >= stage.min_duration_minutes and requests >= stage.min_requests
        passes = found.status is Status.PASSING or (stage.weight < 50 and not found.unscored)
        if met and passes:
            index, started, requests = index + 1, minute, 0
    return run


def _rolled_back(run: Run) -> bool:
    return run.failed_pairs is not None


def _completed(run: Run) -> bool:
    return run.completed_minute is not None


def _within(pairs: int) -> Callable[[Run], bool]:
    return lambda run: run.failed_pairs is not None and run.failed_pairs <= pairs


def _pairs(runs: Sequence[Run]) -> str:
    needed = sorted(math.inf if run.failed_pairs is None else run.failed_pairs for run in runs)
    return f"half by {needed[len(needed) // 2]:.0f}, 90 % by {needed[math.ceil(0.9 * len(needed)) - 1]:.0f} pairs"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the acceptance, with the bound of the share of runs in which `happened`."""

    number: str
    text: str
    world: World
    happened: Callable[[Run], bool]
    bound: float
    at_least: bool = False
    detail: Callable[[Sequence[Run]], str] = lambda runs: ""


_THREE = World(evaluators=3)
_FAIL = 0.007
_STICKY = replace(_THREE, users=300)
_ONE = World()
LINES = (
    Line("1", "A/A, 60/min: rolled back", _THREE, _rolled_back, _FAIL),
    Line("1", "A/A, 3/min, 3 days: rolled back", replace(_THREE, rate=3, minutes=3 * _DAY), _rolled_back, _FAIL),
    Line(
        "2",
        "A/A, judge drifts 20 points in a day: rolled back",
        replace(_THREE, drift=0.2, minutes=_DAY),
        _rolled_back,
        _FAIL,
    ),
    Line("2", "A/A, judge away for 3 h: rolled back", replace(_THREE, away=(200, 380)), _rolled_back, _FAIL),
    Line("2", "A/A, late scores: rolled back", replace(_THREE, late=True), _rolled_back, _FAIL),
    Line("3", "A/A, 40 % missing, of bad answers most: rolled back", replace(_THREE, missing=0.4), _rolled_back, _FAIL),
    Line("4", "A/A, sticky, 300 users, ICC 0.2: rolled back", _STICKY, _rolled_back, _FAIL),
    Line(
        "4",
        "A/A, sticky, a heavy user whom the judge dislikes: rolled back",
        replace(_STICKY, heavy=0.06),
        _rolled_back,
        _FAIL,
    ),
    Line(
        "5",
        "Equal by labels, judge biased by 10 points, a fifth labelled: rolled back",
        replace(_ONE, bias=0.1, label_share=0.2),
        _rolled_back,
        0.05,
    ),
    Line("5", "The same by the raw judge: rolled back", replace(_ONE, bias=0.1), _rolled_back, 1.0, detail=_pairs),
    Line(
        "6",
        "At the margin by labels, a fifth labelled: passes",
        World(loss=0.1, label_share=0.2, watched=True),
        lambda run: run.passed,
        0.05,
    ),
    Line(
        "6",
        "The same, judge also likes the target by 5 points: passes",
        World(loss=0.1, bias=-0.05, label_share=0.2, watched=True),
        lambda run: run.passed,
        0.05,
    ),
    Line(
        "6",
        "At the margin, raw judge calibrated by 100 labels: passes",
        World(loss=0.1, calibrated=100, watched=True),
        lambda run: run.passed,
        0.05,
    ),
    Line(
        "7",
        "30 % of the target's scores missing, of bad answers: passes",
        World(loss=0.2, hidden=0.3, calibrated=400, watched=True),
        lambda run: run.passed,
        0.05,
    ),
    Line(
        "7",
        "The same: unscored holds by 300 tasks of each arm",
        World(loss=0.2, hidden=0.3, calibrated=400, watched=True),
        lambda run: run.unscored_tasks is not None and run.unscored_tasks <= 300,
        0.95,
        True,
    ),
    Line("9", "Worse by 50 points: found within 100 pairs", replace(_ONE, loss=0.5), _within(100), 0.9, True, _pairs),
    Line("9", "Worse by 20 points: found within 450 pairs", replace(_ONE, loss=0.2), _within(450), 0.9, True, _pairs),
    Line(
        "9",
        "Worse by 20 points, a fifth labelled: found within 450 pairs",
        replace(_ONE, loss=0.2, label_share=0.2),
        _within(450),
        0.0,
        True,
        _pairs,
    ),
    Line("9", "Worse by 50 points, calibrated: completes", replace(_ONE, loss=0.5, calibrated=100), _completed, 0.0),
    Line("9", "Worse by 20 points, calibrated: completes", replace(_ONE, loss=0.2, calibrated=100), _completed, 0.0),
    Line(
        "10",
        "Harmless, 3 judges calibrated by 100 labels: completes within a day",
        replace(_THREE, calibrated=100, minutes=_DAY),
        _completed,
        0.9,
        True,
    ),
    Line(
        "10",
        "Harmless, 3 judges calibrated by 400 labels: completes within a day",
        replace(_THREE, calibrated=400, minutes=_DAY),
        _completed,
        0.9,
        True,
    ),
)


def _simulate(job: tuple[int, int]) -> Run:
    line, number = job
    return simulate(LINES[line].world, f"{LINES[line].world}:{number}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", action="append", metavar="LINE", help="only the lines of this number")
    options = parser.parse_args(arguments)
    print(
        "| Line | | Bound | Measured | 95 % limits | Runs | | Besides |\n|---|---|---|---|---|---|---|---|", flush=True
    )
    broken = False
    # Lines of one world are about the same runs.
    known: dict[World, list[Run]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for place, line in enumerate(LINES):
            if not options.only or line.number in options.only:
                if line.world not in known:
                    jobs = [(place, number) for number in range(options.runs)]
                    known[line.world] = list(pool.map(_simulate, jobs, chunksize=5))
                broken = _print(line, known[line.world]) or broken
    return int(broken)


def _print(line: Line, runs: Sequence[Run]) -> bool:
    """Prints the line. Returns whether it is broken beyond chance."""
    count = sum(map(line.happened, runs))
    low, high = limits(count, len(runs))
    broken = high < line.bound if line.at_least else low > line.bound
    kept = low >= line.bound if line.at_least else high <= line.bound or count == line.bound == 0
    standing = "broken" if broken else "kept" if kept else "open"
    sign = "≥" if line.at_least else "≤"
    cells = [line.number, line.text, f"{sign} {line.bound:.1%}", f"{count / len(runs):.2%}", f"{low:.2%} to {high:.2%}"]
    cells += [str(len(runs)), standing, line.detail(runs)]
    print(f"| {' | '.join(cells)} |", flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
