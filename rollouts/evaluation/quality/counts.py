"""The input: the evaluation tasks of one minute, by evaluator and arm.

A task is made with its request, before anybody knows its score, and belongs to that minute for ever. A minute is handed
over when all its tasks have ended, scored or missing, and minutes come in order without a gap. So neither a quick score
nor a slow label has an advantage, and no look comes before the bad answers that nobody could score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollouts.evaluation.quality.rules import Basis
from rollouts.evaluation.statistics.clusters import ClusterSums


@dataclass(frozen=True, slots=True)
class Task:
    """A task that has ended. `order` pairs tasks: the hash of its request, which says nothing of the answer.

    `score` and `label` are from 0 to 1, 1 being best; None is missing. A `label` is read only where one is due. `user`
    separates the users of sticky allocation.
    """

    order: int
    score: float | None = None
    label_due: bool = False
    label: float | None = None
    user: int | None = None

    @property
    def missing(self) -> bool:
        return self.score is None or (self.label_due and self.label is None)


UserTasks = tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class ArmTasks:
    """The tasks of one arm of one evaluator. The other fields are for sticky allocation only.

    `users` start to count in this minute, with their first five tasks of the stage; they were not in the target before
    the stage. `clusters` are sums over users' scores from the start to the end of this or an earlier minute; they weigh
    the blocks that begin after it.
    """

    tasks: tuple[Task, ...] = ()
    users: tuple[UserTasks, ...] = ()
    clusters: ClusterSums | None = None


@dataclass(frozen=True, slots=True)
class EvaluatorTasks:
    """`agreed`: whether second opinions agree with the first ones beyond chance; None if nobody looked."""

    target: ArmTasks = field(default_factory=ArmTasks)
    baseline: ArmTasks = field(default_factory=ArmTasks)
    drifted: bool = False
    agreed: bool | None = None


@dataclass(frozen=True, slots=True)
class QualityMinute:
    """The tasks of all evaluators of one basis, for requests of one stage recorded in one minute. `minute` is Unix time
    divided by 60; stages count from 1."""

    minute: int
    stage: int
    basis: Basis
    evaluators: Mapping[str, EvaluatorTasks] = field(default_factory=dict)
