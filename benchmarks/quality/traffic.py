"""Draws the answers of a rollout that are due to be scored, with their scores and labels."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.quality.worlds import CALLED_GOOD, DAY, SENSITIVITY, SPECIFICITY, MissingBy, People, World
from rollouts.evaluation.quality import ArmTasks, Evaluator, EvaluatorTasks, QualityMinute, Task
from rollouts.evaluation.quality.counts import UserTasks
from rollouts.evaluation.statistics.clusters import ClusterSums
from rollouts.evaluation.users import FIRST_REQUESTS

_MAX_PAIRS = 10
"""The tasks of each arm that are sampled in a minute."""
_PATIENCE = 15
_USERS_SHAPE, _ACTIVITY = 4.0, 1.3
"""The shape of the users' own shares of good answers, which gives an intraclass correlation of 0.2, and of their
activity."""
_HARD = 0.4
"""The share of inputs that are long, or in the language that is not scored: of these `_HARD_LOSS` fewer answers are
good, and of the others so many more that the mean stays."""
_HARD_LOSS = 0.12

Arms = tuple[Sequence[int], Sequence[int]]
"""The users of the target's and the baseline's answered requests of a minute; -1 for nobody in particular."""


@dataclass(frozen=True, slots=True)
class _Answer:
    user: int
    good: bool
    hard: bool = False


@dataclass(slots=True)
class _Person:
    place: float
    good: float
    targeted: bool = False
    stage: int = 0
    first: list[list[Task]] = field(default_factory=list)


@dataclass(slots=True)
class _Sums:
    """The sums over users of one arm, kept up as scores come."""

    by_user: dict[int, tuple[int, float]] = field(default_factory=dict)
    requests_squared: float = 0.0
    total: float = 0.0
    total_squared: float = 0.0
    cross: float = 0.0
    values_squared: float = 0.0
    requests: float = 0.0

    def add(self, user: int, score: float) -> None:
        count, total = self.by_user.get(user, (0, 0.0))
        self.by_user[user] = count + 1, total + score
        self.requests += 1
        self.requests_squared += 2 * count + 1
        self.total += score
        self.total_squared += 2 * total * score + score * score
        self.cross += (total + score) * (count + 1) - total * count
        self.values_squared += score * score

    def sums(self) -> ClusterSums:
        return ClusterSums(
            self.requests,
            self.requests_squared,
            self.total,
            self.total_squared,
            self.cross,
            self.values_squared,
        )


class Traffic:
    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng
        self._basis = Evaluator("", label_share=world.label_share).basis
        self._people: list[_Person] = []
        self._activity: list[float] = []
        for _ in range(world.users):
            chance = rng.betavariate(world.good * _USERS_SHAPE, (1 - world.good) * _USERS_SHAPE)
            self._people.append(_Person(rng.random(), chance))
            self._activity.append(rng.paretovariate(_ACTIVITY))
        if world.busy:
            by_activity = sorted(range(world.users), key=self._activity.__getitem__)
            for place, user in enumerate(by_activity):
                shift = 0.8 * world.busy if place >= 0.8 * world.users else -0.2 * world.busy
                self._people[user].good = min(1.0, max(0.0, self._people[user].good + shift))
        if world.heavy:
            self._activity[0] = sum(self._activity[1:]) * world.heavy / (1 - world.heavy)
            # In the target from 10 % on.
            self._people[0].place = 0.09
        self._sums = [(_Sums(), _Sums()) for _ in range(world.evaluators)]

    def requests(self, weight: int) -> Arms:
        rng, world = self._rng, self._world
        number = _poisson(world.rate, rng)
        arms: tuple[list[int], list[int]] = ([], [])
        if world.users:
            for user in rng.choices(range(world.users), self._activity, k=number):
                arms[self._people[user].place >= weight / 100].append(user)
            return arms
        target = sum(rng.random() < weight / 100 for _ in range(number))
        return (-1,) * target, (-1,) * (number - target)

    def minute(self, minute: int, stage: int, requests: Arms) -> QualityMinute | None:
        """Returns the tasks of a minute with these requests, as many of each arm; None if none is due."""
        rng, world = self._rng, self._world
        drawn = min(*map(len, requests), _MAX_PAIRS)
        if not drawn:
            return None
        tasks: list[tuple[list[Task], list[Task]]] = [([], []) for _ in world.titles]
        users: list[tuple[list[UserTasks], list[UserTasks]]] = [([], []) for _ in world.titles]
        for arm, of_arm in enumerate(requests):
            for user in rng.sample(of_arm, drawn):
                made = self._tasks(minute, arm, user)
                for place, task in enumerate(made):
                    tasks[place][arm].append(task)
                if world.users:
                    self._note(made, arm, user, stage, users)
        evaluators = {}
        for place, title in enumerate(world.titles):
            target, baseline = (
                ArmTasks(
                    tuple(tasks[place][arm]),
                    tuple(users[place][arm]),
                    self._sums[place][arm].sums() if world.users else None,
                )
                for arm in (0, 1)
            )
            evaluators[title] = EvaluatorTasks(target, baseline)
        return QualityMinute(minute, stage, self._basis, evaluators)

    def _tasks(self, minute: int, arm: int, user: int) -> list[Task]:
        world = self._world
        answer = self._answer(arm, user)
        flips = 0.0
        if world.drift:
            flips += world.drift * minute / DAY / CALLED_GOOD
        if world.bias and arm == 0:
            flips += world.bias / (CALLED_GOOD if world.bias > 0 else 1 - CALLED_GOOD)
        if world.heavy and user == 0:
            flips = 0.5
        return [self._task(minute, arm, answer, flips) for _ in world.titles]

    def _answer(self, arm: int, user: int) -> _Answer:
        world, rng = self._world, self._rng
        chance = self._people[user].good if world.users else world.good
        hard = False
        if world.missing and world.missing_by is not MissingBy.OUTCOME:
            hard = rng.random() < _HARD
            chance += -_HARD_LOSS * (1 - _HARD) if hard else _HARD_LOSS * _HARD
        return _Answer(user, rng.random() < chance - (world.loss if arm == 0 else 0.0), hard)

    def _task(self, minute: int, arm: int, answer: _Answer, flips: float) -> Task:
        world, rng = self._world, self._rng
        called = answer.good
        if not world.rules:
            called = rng.random() < (SENSITIVITY if answer.good else 1 - SPECIFICITY)
            if flips and rng.random() < abs(flips):
                called = flips < 0
        due = world.label_share is not None and rng.random() < world.label_share
        score = None if self._is_missing(minute, arm, answer) else float(called)
        return Task(
            rng.getrandbits(48),
            score,
            due,
            self._label(answer, called=called) if due else None,
            answer.user if world.users else None,
        )

    def _label(self, answer: _Answer, *, called: bool) -> float:
        match self._world.people:
            case People.RIGHT:
                return float(answer.good)
            case People.REPEAT:
                return float(called)
            case People.GUESS:
                return float(self._rng.random() < 0.5)
            case People.CALL_ALL_GOOD:
                return 1.0

    def _is_missing(self, minute: int, arm: int, answer: _Answer) -> bool:
        world, rng = self._world, self._rng
        if world.away and world.away[0] <= minute < world.away[1]:
            return True
        if world.late and rng.lognormvariate(math.log(5), 2) > _PATIENCE:
            return True
        share = world.missing + (world.hidden if arm == 0 else 0.0)
        if not share:
            return False
        if world.missing_by is MissingBy.LANGUAGE:
            return answer.hard
        if world.missing_by is MissingBy.LENGTH:
            # The judge's context has room for some of the long ones.
            return rng.random() < (0.9 if answer.hard else (share - 0.9 * _HARD) / (1 - _HARD))
        bad = 1 - world.good + (world.loss if arm == 0 else 0.0)
        of_bad = min(1.0, share / bad) if world.hidden else min(1.0, 2 * share)
        of_good = max(0.0, (share - of_bad * bad) / (1 - bad))
        return rng.random() < (of_good if answer.good else of_bad)

    def _note(
        self, made: Sequence[Task], arm: int, user: int, stage: int, users: Sequence[Sequence[list[UserTasks]]]
    ) -> None:
        person = self._people[user]
        if person.stage != stage:
            person.stage = stage
            # Who was in the target before the stage does not count in it.
            person.first = [] if person.targeted else [[] for _ in made]
            person.targeted = person.targeted or arm == 0
        for place, task in enumerate(made):
            if task.score is not None:
                self._sums[place][arm].add(user, task.score)
            if person.first and len(person.first[place]) < FIRST_REQUESTS:
                person.first[place].append(task)
                if len(person.first[place]) == FIRST_REQUESTS:
                    users[place][arm].append(tuple(person.first[place]))


def _poisson(mean: float, rng: random.Random) -> int:
    number, left = 0, rng.expovariate(1.0)
    while left < mean:
        number, left = number + 1, left + rng.expovariate(1.0)
    return number
