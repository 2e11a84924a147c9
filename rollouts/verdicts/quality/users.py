"""The users of a rollout with sticky allocation, by evaluator: who counts once in a stage, and how much one user's
scores resemble each other.

A user is one of the 10,000 buckets that decide the arm, as in the minutes of the metrics: no user id is kept, and users
of one bucket are always in one arm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from analytics.queries.variants import BASELINE, TARGET
from rollouts.evaluation.quality import ArmTasks, EvaluatorTasks, Task
from rollouts.evaluation.statistics.clusters import ClusterSums
from rollouts.evaluation.users import FIRST_REQUESTS

_PER_PERCENT = 100


@dataclass(frozen=True, slots=True)
class UserSums:
    tasks: int = 0
    total: float = 0.0
    squares: float = 0.0

    def joined(self, score: float) -> UserSums:
        return UserSums(self.tasks + 1, self.total + score, self.squares + score * score)


@dataclass(frozen=True, slots=True)
class Users:
    """`sums` are by arm and bucket. `waiting` are tasks of users with fewer than five in a stage, by stage and bucket;
    `counted` are the buckets of those who had five, by stage."""

    sums: Mapping[str, Mapping[int, UserSums]] = field(default_factory=dict)
    waiting: Mapping[int, Mapping[int, tuple[Task, ...]]] = field(default_factory=dict)
    counted: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


UsersByTitle = Mapping[str, Users]


def with_users(users: Users, tasks: EvaluatorTasks, stage: int, weight_before: int) -> tuple[Users, EvaluatorTasks]:
    """Returns the users after one minute's tasks, and the tasks with what these say of users. `weight_before` is that
    of the stage before: users below it had the target already."""
    sums = {arm: dict(users.sums.get(arm, {})) for arm in (TARGET, BASELINE)}
    waiting, counted = dict(users.waiting.get(stage, {})), set(users.counted.get(stage, ()))
    arms: dict[str, ArmTasks] = {}
    for arm, found in ((TARGET, tasks.target), (BASELINE, tasks.baseline)):
        _add(sums[arm], found.tasks)
        begun: list[tuple[Task, ...]] = []
        for task in found.tasks:
            if task.user is None or task.user < _PER_PERCENT * weight_before or task.user in counted:
                continue
            first = (*waiting.pop(task.user, ()), task)
            if len(first) < FIRST_REQUESTS:
                waiting[task.user] = first
            else:
                counted.add(task.user)
                begun.append(first)
        arms[arm] = replace(found, users=tuple(begun), clusters=_clusters(sums[arm]))
    after = Users(
        sums,
        {**users.waiting, stage: dict(sorted(waiting.items()))},
        {**users.counted, stage: tuple(sorted(counted))},
    )
    return after, replace(tasks, target=arms[TARGET], baseline=arms[BASELINE])


def _add(sums: dict[int, UserSums], tasks: Iterable[Task]) -> None:
    for task in tasks:
        if task.user is not None and task.score is not None:
            sums[task.user] = sums.get(task.user, UserSums()).joined(task.score)


def _clusters(sums: Mapping[int, UserSums]) -> ClusterSums:
    # A database may hand the buckets back in another order, in which the sums could differ in the last digit.
    users: Sequence[UserSums] = [sums[bucket] for bucket in sorted(sums)]
    return ClusterSums(
        requests=float(sum([one.tasks for one in users])),
        requests_squared=float(sum([one.tasks**2 for one in users])),
        total=math.fsum([one.total for one in users]),
        total_squared=math.fsum([one.total**2 for one in users]),
        cross=math.fsum([one.total * one.tasks for one in users]),
        values_squared=math.fsum([one.squares for one in users]),
    )
