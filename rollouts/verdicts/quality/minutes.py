"""The minutes of tasks that `advance_quality` takes. Pure: a minute follows from its tasks and those before it, not
from when somebody looks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any
from uuid import UUID

from analytics.online_evaluations.ended import EndedTask
from analytics.queries.variants import BASELINE, TARGET
from rollouts.evaluation.quality import ArmTasks, Basis, EvaluatorTasks, QualityMinute, Task
from rollouts.verdicts.quality.users import Users, UsersByTitle, with_users

Cell = tuple[int, int]
"""A minute, which is Unix time divided by 60, and a stage."""


def minutes_of(
    basis: Basis, tasks: Iterable[EndedTask], titles: Mapping[UUID, str], buckets: Mapping[UUID, int] | None
) -> list[QualityMinute]:
    own = sorted((one for one in tasks if one.version_id in titles), key=_cell)
    return [
        QualityMinute(minute, stage, basis, _by_evaluator(list(found), titles, buckets or {}))
        for (minute, stage), found in groupby(own, key=_cell)
    ]


def with_all_users(
    users: UsersByTitle, minutes: Sequence[QualityMinute], weights: Sequence[int]
) -> tuple[UsersByTitle, list[QualityMinute]]:
    found, after = dict(users), []
    for minute in minutes:
        before = weights[minute.stage - 2] if minute.stage > 1 else 0
        evaluators: dict[str, EvaluatorTasks] = {}
        for title, tasks in minute.evaluators.items():
            found[title], evaluators[title] = with_users(found.get(title, Users()), tasks, minute.stage, before)
        after.append(replace(minute, evaluators=evaluators))
    return found, after


def with_drifted(minutes: Sequence[QualityMinute], drifted: Collection[str]) -> list[QualityMinute]:
    if not minutes or not drifted:
        return list(minutes)
    return [_drifted(minutes[0], drifted), *minutes[1:]]


def with_opinions(minutes: Sequence[QualityMinute], agreed: Mapping[str, bool]) -> list[QualityMinute]:
    if not minutes or not agreed:
        return list(minutes)
    return [_said(minutes[0], {title: {"agreed": one} for title, one in agreed.items()}), *minutes[1:]]


def with_other_shares(
    minutes: Sequence[QualityMinute], tasks: Iterable[EndedTask], shares: Mapping[UUID, tuple[str, float | None]]
) -> list[QualityMinute]:
    """Marks evaluators as drifted whose tasks have another share of labels than theirs, on which the correction of
    their scores rests. `shares` are title and share by version."""
    others: dict[Cell, set[str]] = {}
    for task in tasks:
        title, share = shares[task.version_id]
        if task.label_share != share:
            others.setdefault(_cell(task), set()).add(title)
    return [_drifted(one, others.get((one.minute, one.stage), ())) for one in minutes]


def _drifted(minute: QualityMinute, titles: Collection[str]) -> QualityMinute:
    return _said(minute, {title: {"drifted": True} for title in sorted(titles)})


def _said(minute: QualityMinute, changes: Mapping[str, Mapping[str, Any]]) -> QualityMinute:
    said = {title: replace(minute.evaluators.get(title, EvaluatorTasks()), **one) for title, one in changes.items()}
    return replace(minute, evaluators={**minute.evaluators, **said})


def _cell(task: EndedTask) -> Cell:
    return int(task.minute.timestamp()) // 60, task.stage


def _by_evaluator(
    tasks: Sequence[EndedTask], titles: Mapping[UUID, str], buckets: Mapping[UUID, int]
) -> Mapping[str, EvaluatorTasks]:
    found: dict[str, dict[str, list[Task]]] = {}
    for one in tasks:
        arms = found.setdefault(titles[one.version_id], {TARGET: [], BASELINE: []})
        if one.variant in arms:
            arms[one.variant].append(_task(one, buckets.get(one.request_id)))
    return {title: EvaluatorTasks(_arm(arms[TARGET]), _arm(arms[BASELINE])) for title, arms in sorted(found.items())}


def _arm(tasks: Sequence[Task]) -> ArmTasks:
    return ArmTasks(tuple(sorted(tasks, key=lambda task: task.order)))


def _task(task: EndedTask, user: int | None) -> Task:
    return Task(task.position, task.score, task.label_due, task.label, user)
