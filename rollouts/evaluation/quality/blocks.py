"""What a block of tasks, or of users, adds to the evidence of one evaluator."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rollouts.evaluation.one_user import design_within
from rollouts.evaluation.quality.counts import Task, UserTasks
from rollouts.evaluation.quality.pairing import PairFactors, pair_factors
from rollouts.evaluation.quality.rules import Evaluator
from rollouts.evaluation.quality.state import EvaluatorState
from rollouts.evaluation.quality.values import Value, mean_of, reach, value_of
from rollouts.evaluation.state import UserState
from rollouts.evaluation.statistics.clusters import ClusterSums
from rollouts.evaluation.statistics.evidence import ODDS, added, odds_factors
from rollouts.evaluation.statistics.mixture import evidence
from rollouts.evaluation.statistics.strata import with_sums
from rollouts.evaluation.users import share_factors


def with_block(
    one: EvaluatorState, rule: Evaluator, target: Sequence[Task], baseline: Sequence[Task], waiting: float
) -> EvaluatorState:
    """Returns the evaluator after a block of these tasks. `waiting` is the weight of the processes that have not
    begun."""
    target, baseline = _ordered(target), _ordered(baseline)
    prediction = one.labels.prediction
    own, theirs = ([value_of(task, rule, prediction) for task in tasks] for tasks in (target, baseline))
    one = _with_missing(one, target, baseline, waiting)
    if one.users is not None:
        design = _design_of_block((*target, *baseline), (*own, *theirs))
        one = replace(one, block_design=design, variation=one.variation.with_block(*_sums(theirs)))
    factors = pair_factors(own, theirs, rule, reach(rule, prediction))
    return replace(
        _weighed(one, factors, waiting),
        pairs=one.pairs + factors.pairs,
        complete=one.complete + _complete(target, baseline),
        strata=with_sums(one.strata, *_sums(own), *_sums(theirs)),
        labels=one.labels.with_tasks((*target, *baseline)),
        target=one.target.with_tasks(target),
        baseline=one.baseline.with_tasks(baseline),
    )


def with_users(
    one: EvaluatorState, rule: Evaluator, target: Sequence[UserTasks], baseline: Sequence[UserTasks], waiting: float
) -> EvaluatorState:
    """Returns the evaluator after a block of users, each of whom counts once."""
    if one.users is None:
        return one
    prediction = one.user_labels.prediction
    own, theirs = (
        [mean_of([value_of(task, rule, prediction) for task in user]) for user in sorted(users, key=_user_order)]
        for users in (target, baseline)
    )
    worse = added(one.users.worse, pair_factors(own, theirs, rule, reach(rule, prediction)).worse)
    found = evidence(worse, waiting)
    labels = one.user_labels.with_tasks(task for user in (*target, *baseline) for task in user)
    one = replace(one, users=UserState(worse, found, max(one.users.peak, found)), user_labels=labels)
    shares = [Counter(sum(task.missing for task in user) for user in users) for users in (target, baseline)]
    missing = share_factors(*shares)
    return one if missing is None else _unscored(one, missing, waiting)


def _weighed(one: EvaluatorState, factors: PairFactors, waiting: float) -> EvaluatorState:
    if one.design is None:
        return one
    design = max(one.design, one.block_design)
    worse = tuple([log + factor / design for log, factor in zip(one.worse, factors.worse, strict=True)])
    safe = tuple([log + factor / design for log, factor in zip(one.safe, factors.not_worse, strict=True)])
    found = evidence(worse, waiting)
    return replace(one, worse=worse, safe=safe, evidence=found, peak=max(one.peak, found))


def _with_missing(
    one: EvaluatorState, target: Sequence[Task], baseline: Sequence[Task], waiting: float
) -> EvaluatorState:
    drawn, others = len(target), len(baseline)
    if not drawn or not others:
        return one
    events, others_events = (sum(task.missing for task in tasks) for tasks in (target, baseline))
    rates = one.unscored_rates.with_events(events=events, drawn=drawn, others_events=others_events, others=others)
    one = replace(one, unscored_rates=rates)
    if one.users is not None:
        # With sticky allocation one user may be all that is missing, so that only users are evidence.
        return one
    total = drawn + others
    factors = odds_factors(events=events, drawn=drawn, all_events=events + others_events, total=total, odds=ODDS)
    return _unscored(one, factors, waiting)


def _unscored(one: EvaluatorState, factors: tuple[float, ...], waiting: float) -> EvaluatorState:
    unscored = added(one.unscored, factors)
    return replace(one, unscored=unscored, unscored_evidence=evidence(unscored, waiting))


def _design_of_block(tasks: Sequence[Task], values: Sequence[Value]) -> float:
    """Returns the design effect of a block by itself, over the users of both arms."""
    by_user: dict[int, list[float]] = {}
    for number, (task, value) in enumerate(zip(tasks, values, strict=True)):
        if value.known:
            # A task of no user is one by itself.
            user = -1 - number if task.user is None else task.user
            by_user.setdefault(user, []).append((value.low + value.high) / 2)
    return design_within(cluster_sums([by_user[user] for user in sorted(by_user)]))


def cluster_sums(users: Sequence[Sequence[float]]) -> ClusterSums:
    """Returns the sums over users with these values."""
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
    """Returns the number, the sum and the sum of squares of the values without a doubt."""
    known = [value.low for value in values if value.exact]
    return len(known), math.fsum(known), math.fsum([value * value for value in known])


def _complete(target: Sequence[Task], baseline: Sequence[Task]) -> int:
    return sum(not (own.missing or theirs.missing) for own, theirs in zip(target, baseline, strict=False))


def _ordered(tasks: Sequence[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: task.order)


def _user_order(user: UserTasks) -> int:
    return user[0].order
