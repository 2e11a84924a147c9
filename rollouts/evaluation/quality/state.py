"""The state of the evaluators of a rollout between two minutes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rollouts.evaluation.pairs import STAKES
from rollouts.evaluation.quality.counts import Task, UserTasks
from rollouts.evaluation.quality.rules import FIRST_SHARE, Basis, Evaluator
from rollouts.evaluation.quality.values import LabelSums
from rollouts.evaluation.state import UserState
from rollouts.evaluation.statistics.clustering import Variation
from rollouts.evaluation.statistics.evidence import ODDS, log_mean
from rollouts.evaluation.statistics.mixture import beginnings
from rollouts.evaluation.statistics.strata import AnsweredRates, Strata
from rollouts.evaluation.terms import Action
from rollouts.evaluation.users import SHARE_TILTS


@dataclass(frozen=True, slots=True)
class TaskTotals:
    """The tasks of one arm: how many were due, and how many of them have no score, or no label that was due."""

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
class EvaluatorState:
    """The evidence of one evaluator. The fields that `state.MetricState` has too mean the same; `worse` and `safe` are
    by stake.

    `common_design` is the design effect of sticky allocation over both arms together, None while it is not known.
    `pairs` were compared, and of these `complete` had both scores. `unscored` is the evidence that more of the target's
    tasks are missing: of tasks by odds or, with sticky allocation, of users by tilt. `labels` are those of earlier
    blocks and `user_labels` those of earlier blocks of users, whose tasks are in blocks of both kinds. The tasks and
    users of the open block are held as they came.
    """

    worse: tuple[float, ...]
    safe: tuple[float, ...]
    unscored: tuple[float, ...]
    evidence: float = 0.0
    peak: float = 0.0
    unscored_evidence: float = 0.0
    unscored_rates: AnsweredRates = field(default_factory=AnsweredRates)
    pairs: int = 0
    complete: int = 0
    design: float | None = 1.0
    next_design: float | None = 1.0
    block_design: float = 1.0
    common_design: float | None = None
    variation: Variation = field(default_factory=Variation)
    strata: Strata = field(default_factory=Strata)
    users: UserState | None = None
    labels: LabelSums = field(default_factory=LabelSums)
    user_labels: LabelSums = field(default_factory=LabelSums)
    target: TaskTotals = field(default_factory=TaskTotals)
    baseline: TaskTotals = field(default_factory=TaskTotals)
    drifted: bool = False
    open_target: tuple[Task, ...] = ()
    open_baseline: tuple[Task, ...] = ()
    open_target_users: tuple[UserTasks, ...] = ()
    open_baseline_users: tuple[UserTasks, ...] = ()

    @property
    def safety(self) -> float:
        """Returns ln S, the evidence that the target keeps within the margin."""
        return log_mean(self.safe)

    @property
    def missing_share(self) -> float:
        """The share of the pairs that lack a score, or a label that was due."""
        return 1 - self.complete / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True)
class BasisState:
    """All evaluators of one basis, whose blocks end at the same times: what one evaluator shows must say nothing of
    another one's open block."""

    evaluators: Mapping[str, EvaluatorState]
    stage: int = 0
    last_minute: int = 0
    last_stage: int = 0


@dataclass(frozen=True, slots=True)
class QualityState:
    """The whole state; `weights` are the stages' weights in percent."""

    weights: tuple[int, ...]
    sticky: bool
    evaluators: tuple[Evaluator, ...]
    bases: Mapping[Basis, BasisState]

    def rule(self, title: str) -> Evaluator:
        return next(one for one in self.evaluators if one.title == title)

    def of(self, title: str) -> EvaluatorState:
        return self.bases[self.rule(title).basis].evaluators[title]

    def waiting(self, basis: Basis) -> float:
        """Returns the weight of the processes that have not begun."""
        return math.fsum(beginnings(self.weights, FIRST_SHARE)[max(self.bases[basis].stage, 1) :])

    @property
    def deciding(self) -> tuple[Evaluator, ...]:
        """The evaluators among which the probability of a wrong decision is shared."""
        return tuple(one for one in self.evaluators if one.action is not Action.IGNORE)


def initial_quality(evaluators: Sequence[Evaluator], *, weights: Sequence[int], sticky: bool) -> QualityState:
    """Returns the state at the start. `weights` are those of the stages in percent, in order; `sticky` when users or
    sessions keep their arm.

    Raises ValueError without any stage, or for two evaluators of one title.
    """
    if not weights:
        raise ValueError("weights: a rollout has at least one stage")
    if len({one.title for one in evaluators}) < len(evaluators):
        raise ValueError("evaluators: two have the same title")
    first = math.log(beginnings(tuple(weights), FIRST_SHARE)[0])
    design = None if sticky else 1.0
    begin = EvaluatorState(
        worse=(first,) * len(STAKES),
        safe=(0.0,) * len(STAKES),
        unscored=(first,) * len(SHARE_TILTS if sticky else ODDS),
        design=design,
        next_design=design,
        users=UserState((first,) * len(STAKES)) if sticky else None,
    )
    return QualityState(
        weights=tuple(weights),
        sticky=sticky,
        evaluators=tuple(evaluators),
        bases={
            basis: BasisState({one.title: begin for one in evaluators if one.basis is basis})
            for basis in Basis
            if any(one.basis is basis for one in evaluators)
        },
    )
