from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rollouts.evaluation.one_user import design_within
from rollouts.evaluation.quality.counts import Task, UserTasks
from rollouts.evaluation.quality.outcomes import rate_factors, with_goal
from rollouts.evaluation.quality.pairing import pair_factors
from rollouts.evaluation.quality.rules import Evaluator
from rollouts.evaluation.quality.state import EvaluatorState
from rollouts.evaluation.quality.values import Value, mean_of, reach, value_of
from rollouts.evaluation.statistics.clusters import ClusterSums
from rollouts.evaluation.statistics.evidence import added, odds_between
from rollouts.evaluation.statistics.mixture import evidence
from rollouts.evaluation.statistics.strata import with_sums
from rollouts.evaluation.users import share_factors


def with_block(
    one: EvaluatorState, rule: Evaluator, target: Sequence[Task], baseline: Sequence[Task], waiting: float
) -> EvaluatorState:
    target, baseline = _ordered(target), _ordered(baseline)
    prediction = one.labels.prediction
    own, theirs = ([value_of(task, rule, prediction) for task in tasks] for tasks in (target, baseline))
    one = _with_missing(one, target, baseline, waiting)
    if one.users is not None:
        design = _design_of_block((*target, *baseline), (*own, *theirs))
        one = replace(one, block_design=design, variation=one.variation.with_block(*_sums(theirs)))
    factors = pair_factors(own, theirs, rule, reach(rule, prediction))
    if rule.goal:
        one = with_goal(one, rule, own, theirs)
    return one.with_factors(
        (rate_factors(own, theirs) if rule.is_outcome else None) or factors.worse,
        factors.not_worse,
        waiting,
        pairs=one.pairs + factors.pairs,
        complete=one.complete + _complete(target, baseline),
        strata=with_sums(one.strata, *_sums(own), *_sums(theirs)),
        labels=one.labels.with_tasks((*target, *baseline)),
        told=one.told and one.told.with_tasks((*target, *baseline)),
        target=one.target.with_tasks(target),
        baseline=one.baseline.with_tasks(baseline),
    )


def with_users(
    one: EvaluatorState, rule: Evaluator, target: Sequence[UserTasks], baseline: Sequence[UserTasks], waiting: float
) -> EvaluatorState:
    if one.users is None:
        return one
    prediction = one.user_labels.prediction
    own, theirs = (
        [mean_of([value_of(task, rule, prediction) for task in user]) for user in sorted(users, key=_user_order)]
        for users in (target, baseline)
    )
    factors = pair_factors(own, theirs, rule, reach(rule, prediction))
    labels = one.user_labels.with_tasks(task for user in (*target, *baseline) for task in user)
    one = replace(one.with_users(factors.worse, waiting), user_labels=labels)
    shares = [Counter(sum(task.missing for task in user) for user in users) for users in (target, baseline)]
    missing = share_factors(*shares)
    return one if missing is None else _unscored(one, missing, waiting)


def _with_missing(
    one: EvaluatorState, target: Sequence[Task], baseline: Sequence[Task], waiting: float
) -> EvaluatorState:
    if not target or not baseline:
        return one
    own, theirs = ((sum(task.missing for task in tasks), len(tasks)) for tasks in (target, baseline))
    one = replace(one, unscored_rates=one.unscored_rates.with_events(own, theirs))
    # With sticky allocation one user may be all that is missing, so that only users are evidence.
    return one if one.users is not None else _unscored(one, odds_between(own, theirs), waiting)


def _unscored(one: EvaluatorState, factors: tuple[float, ...], waiting: float) -> EvaluatorState:
    unscored = added(one.unscored, factors)
    return replace(one, unscored=unscored, unscored_evidence=evidence(unscored, waiting))


def _design_of_block(tasks: Sequence[Task], values: Sequence[Value]) -> float:
    by_user: dict[int, list[float]] = {}
    for number, (task, value) in enumerate(zip(tasks, values, strict=True)):
        if value.known:
            # A task of no user is one by itself.
            user = -1 - number if task.user is None else task.user
            by_user.setdefault(user, []).append((value.low + value.high) / 2)
    return design_within(cluster_sums([by_user[user] for user in sorted(by_user)]))


def cluster_sums(users: Sequence[Sequence[float]]) -> ClusterSums:
    counts, totals = [len(values) for values in users], [math.fsum(values) for values in users]
    return ClusterSums(
        requests=float(sum(counts)),
        requests_squared=float(sum([count * count for count in counts])),
        total=math.fsum(totals),
        total_squared=math.fsum([total * total for total in totals]),
        cross=math.fsum([total * count for total, count in zip(totals, counts, strict=True)]),
        values_squared=math.fsum([value * value for values in users for value in values]),
    )


def _sums(values: Sequence[Value]) -> tuple[int, float, float]:
    known = [value.low for value in values if value.exact]
    return len(known), math.fsum(known), math.fsum([value * value for value in known])


def _complete(target: Sequence[Task], baseline: Sequence[Task]) -> int:
    return sum(not (own.missing or theirs.missing) for own, theirs in zip(target, baseline, strict=False))


def _ordered(tasks: Sequence[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: task.order)


def _user_order(user: UserTasks) -> int:
    return user[0].order
