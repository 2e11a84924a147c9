from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rollouts.evaluation.ledger import LITTLE_CLUSTERING, Ledger, UserState
from rollouts.evaluation.pairs import STAKES
from rollouts.evaluation.quality.counts import Task, UserTasks
from rollouts.evaluation.quality.labels import LabelInformation
from rollouts.evaluation.quality.rules import FIRST_SHARE, Basis, Evaluator
from rollouts.evaluation.quality.values import LabelSums
from rollouts.evaluation.statistics.evidence import ODDS
from rollouts.evaluation.statistics.mixture import beginning, beginnings, begun
from rollouts.evaluation.statistics.strata import AnsweredRates
from rollouts.evaluation.terms import Action
from rollouts.evaluation.users import SHARE_TILTS


@dataclass(frozen=True, slots=True)
class TaskTotals:
    due: int = 0
    missing: int = 0
    labels_due: int = 0
    labelled: int = 0

    def with_tasks(self, tasks: Sequence[Task]) -> TaskTotals:
        return TaskTotals(
            self.due + len(tasks),
            self.missing + sum(task.missing for task in tasks),
            self.labels_due + sum(task.label_due for task in tasks),
            self.labelled + sum(task.label_due and task.label is not None for task in tasks),
        )


@dataclass(frozen=True, slots=True)
class EvaluatorState(Ledger):
    """The ledger of one evaluator, by stake.

    `common_design` is the design effect over both arms together, None while unknown. Of the `pairs` compared,
    `complete` had both scores. `unscored` is the evidence that more of the target's tasks are missing: of tasks by odds
    or, with sticky allocation, of users by tilt.

    `labels` are those of earlier blocks, `user_labels` those of earlier blocks of users, whose tasks are in blocks of
    both kinds. `told` says whether they carry information, and is None by formula 3, which takes it for granted. The
    open block's tasks and users are held as they came.

    Of the goal of an A/B test, `better` and `not_better` are what `worse` and `safe` are with the arms exchanged.
    """

    unscored: tuple[float, ...] = ()
    unscored_evidence: float = 0.0
    unscored_rates: AnsweredRates = field(default_factory=AnsweredRates)
    pairs: int = 0
    complete: int = 0
    common_design: float | None = None
    labels: LabelSums = field(default_factory=LabelSums)
    user_labels: LabelSums = field(default_factory=LabelSums)
    told: LabelInformation | None = None
    better: tuple[float, ...] = ()
    not_better: tuple[float, ...] = ()
    target: TaskTotals = field(default_factory=TaskTotals)
    baseline: TaskTotals = field(default_factory=TaskTotals)
    drifted: bool = False
    open_target: tuple[Task, ...] = ()
    open_baseline: tuple[Task, ...] = ()
    open_target_users: tuple[UserTasks, ...] = ()
    open_baseline_users: tuple[UserTasks, ...] = ()

    def with_process(self, weight: float) -> EvaluatorState:
        # `super()` without arguments does not work in a dataclass with slots.
        return replace(Ledger.with_process(self, weight), unscored=begun(self.unscored, weight))

    @property
    def is_believed(self) -> bool:
        independent = self.common_design is not None and self.common_design < LITTLE_CLUSTERING
        return (independent and self.is_independent) or self.users_agree

    @property
    def missing_share(self) -> float:
        return 1 - self.complete / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True)
class BasisState:
    """All evaluators of one basis. Their blocks end at the same times: one evaluator must say nothing of another's open
    block."""

    evaluators: Mapping[str, EvaluatorState]
    stage: int = 0
    last_minute: int = 0
    last_stage: int = 0


@dataclass(frozen=True, slots=True)
class QualityState:
    weights: tuple[int, ...]
    sticky: bool
    evaluators: tuple[Evaluator, ...]
    bases: Mapping[Basis, BasisState]

    def rule(self, title: str) -> Evaluator:
        return next(one for one in self.evaluators if one.title == title)

    def of(self, title: str) -> EvaluatorState:
        return self.bases[self.rule(title).basis].evaluators[title]

    def waiting(self, basis: Basis) -> float:
        return beginning(self.weights, FIRST_SHARE, after=self.bases[basis].stage)

    @property
    def deciding(self) -> tuple[Evaluator, ...]:
        return tuple(one for one in self.evaluators if one.action is not Action.IGNORE)


def initial_quality(evaluators: Sequence[Evaluator], *, weights: Sequence[int], sticky: bool) -> QualityState:
    if not weights:
        raise ValueError("weights: a rollout has at least one stage")
    if len({one.title for one in evaluators}) < len(evaluators):
        raise ValueError("evaluators: two have the same title")
    first = math.log(beginnings(tuple(weights), FIRST_SHARE)[0])

    def begin(rule: Evaluator) -> EvaluatorState:
        # A user has one outcome, so that outcomes do not depend on each other.
        clustered = sticky and not rule.is_outcome
        design = None if clustered else 1.0
        nothing = (0.0,) * len(STAKES)
        return EvaluatorState(
            worse=(first,) * len(STAKES),
            safe=nothing,
            unscored=(first,) * len(SHARE_TILTS if clustered else ODDS),
            design=design,
            next_design=design,
            users=UserState((first,) * len(STAKES)) if clustered else None,
            told=LabelInformation(),
            better=nothing if rule.goal else (),
            not_better=nothing if rule.goal else (),
        )

    return QualityState(
        weights=tuple(weights),
        sticky=sticky,
        evaluators=tuple(evaluators),
        bases={
            basis: BasisState({one.title: begin(one) for one in evaluators if one.basis is basis})
            for basis in Basis
            if any(one.basis is basis for one in evaluators)
        },
    )
