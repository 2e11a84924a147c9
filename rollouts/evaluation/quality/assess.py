from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from rollouts.evaluation.policy import EXACT_SIZE, PASS_AT, RATE_COUNT_SIZE
from rollouts.evaluation.quality.rules import (
    MAX_MISSING_SHARE,
    QUALITY_FAILS_AT,
    QUALITY_SIZE,
    UNSCORED_FAILS_AT,
    Basis,
    Evaluator,
)
from rollouts.evaluation.quality.state import EvaluatorState, QualityState
from rollouts.evaluation.statistics.ebh import e_bh
from rollouts.evaluation.statistics.evidence import log_mean, log_sum
from rollouts.evaluation.statistics.intervals import Figures, compared_means, rate_variance, value_variance
from rollouts.evaluation.terms import Action, Status

_evidence: Callable[[EvaluatorState], float] = attrgetter("evidence")

SHOWN_LEVEL = 0.05
"""The level of e-BH at which single evaluators are named, which decides nothing."""


class NotPassing(StrEnum):
    UNCALIBRATED = "uncalibrated"
    JUDGE_DRIFTED = "judge_drifted"
    MISSING_SCORES = "missing_scores"
    NOT_CERTAIN = "not_certain"
    LABELS_UNRELIABLE = "labels_unreliable"


class Goal(StrEnum):
    """The verdict of an A/B test."""

    BETTER = "better"
    NOT_BETTER = "not_better"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class GoalStatus:
    """`evidence` is ln E that the target is better, `safety` that it is not better by the margin. Either decides from
    `PASS_AT` on."""

    title: str
    evidence: float
    safety: float

    @property
    def verdict(self) -> Goal:
        # A gain that is certain counts, although it may be smaller than the margin.
        if self.evidence >= PASS_AT:
            return Goal.BETTER
        return Goal.NOT_BETTER if self.safety >= PASS_AT else Goal.UNDECIDED


NOT_BY_WAITING = frozenset(NotPassing) - {NotPassing.NOT_CERTAIN}
"""What neither more requests nor more scores change."""


@dataclass(frozen=True, slots=True)
class EvaluatorStatus:
    """`evidence` is ln E by tasks, `user_evidence` by users (sticky allocation only), `safety` ln S. `worse` is whether
    e-BH over all evaluators names it; `not_passing` why it does not pass."""

    title: str
    evidence: float
    user_evidence: float | None
    safety: float
    pairs: int
    missing_share: float
    worse: bool
    not_passing: NotPassing | None
    figures: Figures


@dataclass(frozen=True, slots=True)
class QualityAssessment:
    """`status` is passing if nothing fails and nothing required is left; `judged` is False if no evaluator decides
    anything.

    `unscored` holds a rollout whose target has more missing scores. `action` follows when quality fails. `required` are
    the evaluators that must pass and do not. An A/B test has a `goal`.
    """

    status: Status
    judged: bool
    action: Action | None
    evidence: float
    unscored: bool
    unscored_evidence: float
    required: tuple[str, ...]
    evaluators: Mapping[str, EvaluatorStatus]
    goal: GoalStatus | None = None


def assess_quality(state: QualityState) -> QualityAssessment:
    action, unscored = _failing_action(state), _fails_by_missing(state)
    named = _named(state)
    statuses = {rule.title: _status(state, rule, named) for rule in state.evaluators}
    required = tuple(
        rule.title for rule in state.deciding if rule.required and statuses[rule.title].not_passing is not None
    )
    undecided = Status.INCONCLUSIVE if required or unscored else Status.PASSING
    return QualityAssessment(
        status=undecided if action is None else Status.FAILING,
        judged=bool(state.deciding),
        action=action,
        evidence=max((_log_share(state, rules, _evidence) for rules in _by_basis(state.deciding)), default=0.0),
        unscored=unscored,
        unscored_evidence=max((_log_missing(state, rules) for rules in _by_basis(state.deciding)), default=0.0),
        required=required,
        evaluators=statuses,
        goal=next((_goal(state.of(rule.title), rule) for rule in state.evaluators if rule.goal), None),
    )


def _goal(one: EvaluatorState, rule: Evaluator) -> GoalStatus:
    return GoalStatus(rule.title, log_mean(one.better), log_mean(one.not_better))


def figures_of(state: QualityState, title: str) -> Figures:
    """Returns mean values in the units of scores or, where labels correct them, of labels, with the confidence sequence
    of their difference."""
    one = state.of(title)
    strata = one.strata
    # Values that were all alike so far do not prove that there are no others.
    variance = max(value_variance(strata), rate_variance(0, math.floor(strata.weight)))
    return compared_means(strata, design=one.next_design or 1.0, variance=variance)


def is_unchecked(state: QualityState, rule: Evaluator) -> bool:
    """Returns whether nobody knows if the scores say anything of the answers."""
    return rule.scale is None or _labels_repeat(state, rule)


def _labels_repeat(state: QualityState, rule: Evaluator) -> bool:
    told = state.of(rule.title).told
    return rule.label_share is not None and told is not None and told.repeats_judge


def _failing_action(state: QualityState) -> Action | None:
    """All deciding evaluators of one basis are judged together by the mean of their e-values, those left out counting
    as 0. Weaker actions add to what holds, not to what rolls back.

    The bases share the probability of a false alarm by their numbers of evaluators. What only few users of sticky
    allocation may have caused holds, and so does a judge whose labels only repeat it.
    """
    rolling_back = [
        rule for rule in state.deciding if rule.action is Action.ROLL_BACK and not _labels_repeat(state, rule)
    ]
    if any(_fails(state, mine, lambda one: one.is_believed) for mine in _by_basis(rolling_back)):
        return Action.ROLL_BACK
    if any(_fails(state, mine, lambda _: True) for mine in _by_basis(state.deciding)):
        return Action.HOLD
    return None


def _fails(state: QualityState, rules: Iterable[Evaluator], believed: Callable[[EvaluatorState], bool]) -> bool:
    telling = [rule for rule in rules if _is_sizeable(state.of(rule.title), rule)]
    if _log_share(state, telling, _independent_evidence) >= QUALITY_FAILS_AT:
        return True
    telling = [rule for rule in telling if believed(state.of(rule.title))]
    return _log_share(state, telling, _evidence) >= QUALITY_FAILS_AT


def _is_sizeable(one: EvaluatorState, rule: Evaluator) -> bool:
    strata, size = one.strata, QUALITY_SIZE * (rule.scale or 1.0)
    return not one.drifted and strata.weight > 0 and strata.baseline - strata.target >= size * strata.weight


def _fails_by_missing(state: QualityState) -> bool:
    return any(_log_missing(state, rules) >= UNSCORED_FAILS_AT for rules in _by_basis(state.deciding))


def _log_missing(state: QualityState, rules: Iterable[Evaluator]) -> float:
    telling = [
        rule
        for rule in rules
        if state.of(rule.title).target.missing >= RATE_COUNT_SIZE
        and state.of(rule.title).unscored_rates.is_above(*EXACT_SIZE)
    ]
    return _log_share(state, telling, lambda one: one.unscored_evidence)


def _log_share(state: QualityState, rules: Iterable[Evaluator], log: Callable[[EvaluatorState], float]) -> float:
    logs = [log(state.of(rule.title)) for rule in rules]
    known = [one for one in logs if one > -math.inf]
    return log_sum(known) - math.log(len(state.deciding)) if known else -math.inf


def _independent_evidence(one: EvaluatorState) -> float:
    """Returns the evidence of what does not depend on each other: of users, where tasks of one user do."""
    return one.evidence if one.users is None else one.users.evidence


def _by_basis(rules: Iterable[Evaluator]) -> list[list[Evaluator]]:
    known = list(rules)
    found = [[rule for rule in known if rule.basis is basis] for basis in Basis]
    return [mine for mine in found if mine]


def _status(state: QualityState, rule: Evaluator, named: set[str]) -> EvaluatorStatus:
    one = state.of(rule.title)
    return EvaluatorStatus(
        title=rule.title,
        evidence=one.evidence,
        user_evidence=one.user_evidence,
        safety=one.safety,
        pairs=one.pairs,
        missing_share=one.missing_share,
        worse=rule.title in named,
        not_passing=_not_passing(one, rule),
        figures=figures_of(state, rule.title),
    )


def _not_passing(one: EvaluatorState, rule: Evaluator) -> NotPassing | None:
    if rule.scale is None:
        return NotPassing.UNCALIBRATED
    if one.drifted:
        return NotPassing.JUDGE_DRIFTED
    if one.missing_share > MAX_MISSING_SHARE:
        return NotPassing.MISSING_SCORES
    if one.safety < PASS_AT:
        return NotPassing.NOT_CERTAIN
    informs = rule.label_share is None or one.told is None or one.told.informs
    return None if informs else NotPassing.LABELS_UNRELIABLE


def _named(state: QualityState) -> set[str]:
    """Names evaluators by e-BH, each basis by itself, because their clocks differ."""
    named: set[str] = set()
    for rules in _by_basis(state.evaluators):
        logs = [_independent_evidence(state.of(rule.title)) for rule in rules]
        places = e_bh(logs, level=SHOWN_LEVEL, hypotheses=len(state.evaluators))
        named |= {rules[place].title for place in places}
    return named
