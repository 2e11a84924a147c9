"""Counts out what a block adds to the evidence: the mean over everything that chance may do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TypeVar

from rollouts.evaluation.quality import Evaluator, Task, initial_quality
from rollouts.evaluation.quality.counts import UserTasks
from rollouts.evaluation.quality.state import EvaluatorState
from rollouts.evaluation.quality.values import LabelSums

EXACT = 1e-9
WEIGHTS = (10, 50, 100)
LEARNED = LabelSums(40, 30.0, 32.0, 26.0, 27.5)
"""The labels of earlier blocks: those of a judge who is mostly right."""

T = TypeVar("T")
Logs = Callable[[EvaluatorState], Sequence[float]]


def worse(one: EvaluatorState) -> Sequence[float]:
    return one.worse


def safe(one: EvaluatorState) -> Sequence[float]:
    return one.safe


def unscored(one: EvaluatorState) -> Sequence[float]:
    return one.unscored


def of_users(one: EvaluatorState) -> Sequence[float]:
    assert one.users is not None
    return one.users.worse


def begun(rule: Evaluator, *, sticky: bool = False, labels: LabelSums = LEARNED) -> EvaluatorState:
    one = initial_quality([rule], weights=WEIGHTS, sticky=sticky).of(rule.title)
    return replace(one, labels=labels, user_labels=labels, design=1.0, next_design=1.0)


def highest(before: EvaluatorState, after: Iterable[tuple[float, EvaluatorState]], logs: Logs) -> float:
    """Returns the highest mean over the stakes of what a block multiplies the evidence by, given the chances of its
    outcomes."""
    known = list(after)
    return max(
        math.fsum([chance * math.exp(logs(one)[stake] - start) for chance, one in known])
        for stake, start in enumerate(logs(before))
    )


def draws(items: Sequence[T], drawn: int, ordered: Callable[[T, int], T]) -> list[tuple[float, list[T], list[T]]]:
    """Returns every way in which chance chooses the target's and the hashes put both arms in order, with its chance."""
    ways = [[ordered(item, order) for order, item in enumerate(way)] for way in permutations(items)]
    return [(1 / len(ways), way[:drawn], way[drawn:]) for way in ways]


def task_at(task: Task, order: int) -> Task:
    return replace(task, order=order)


def user_at(user: UserTasks, order: int) -> UserTasks:
    return tuple(task_at(task, order) for task in user)
