from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType

from rollouts.evaluation.blocks import EMPTY, Block
from rollouts.evaluation.counts import Outcomes
from rollouts.evaluation.ledger import Ledger, UserState
from rollouts.evaluation.policy import RATES, Metric, Policy
from rollouts.evaluation.statistics.evidence import ODDS, TILTS
from rollouts.evaluation.statistics.grid import Histogram, WeightedHistogram
from rollouts.evaluation.statistics.learning import Learning
from rollouts.evaluation.statistics.mixture import RATES_FIRST_SHARE, VALUES_FIRST_SHARE, beginning, beginnings
from rollouts.evaluation.statistics.reference import reference_from
from rollouts.evaluation.statistics.sample_ratio import SampleRatio
from rollouts.evaluation.statistics.strata import AnsweredRates, Answering
from rollouts.evaluation.together import MIN_USUAL, Rise, Together
from rollouts.evaluation.users import LOOKS, NOBODY, TILTS_OF, UserBlock

FIRST_SHARE: Mapping[Metric, float] = MappingProxyType(
    {metric: RATES_FIRST_SHARE if metric in RATES else VALUES_FIRST_SHARE for metric in Metric}
)

FORMULA = 4
"""The number of the formula. It changes when the same minutes would give another state."""
FORMULAS = (3, FORMULA)
"""Those by which states go on as they began."""


class UnknownFormulaError(ValueError):
    """The state or verdict is of another formula, whose numbers mean something else."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"This rollout was judged by formula {number}, which this version does not have; it has formulas"
            f" {' and '.join(map(str, FORMULAS))}."
            " Roll it back and create it anew."
        )


@dataclass(frozen=True, slots=True)
class MetricState(Ledger):
    """`answering` is of rates alone, and None by formula 3."""

    answered_rates: AnsweredRates = field(default_factory=AnsweredRates)
    answering: Answering | None = None


@dataclass(frozen=True, slots=True)
class ArmTotals(Outcomes):
    latency_ms: int = 0
    priced: int = 0
    cost_usd: Decimal = Decimal(0)
    reasons: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Served:
    """The requests of one arm in the current stage, and those without a proper answer; of both, how many are not
    compared (see `Outcomes`)."""

    requests: int = 0
    unanswered: int = 0
    uncompared: int = 0
    uncompared_unanswered: int = 0

    @property
    def answered(self) -> int:
        return self.requests - self.unanswered

    @property
    def unanswered_share(self) -> float:
        return self.unanswered / self.requests if self.requests else 0.0

    @property
    def compared(self) -> Served:
        return Served(self.requests - self.uncompared, self.unanswered - self.uncompared_unanswered)


@dataclass(frozen=True, slots=True)
class State:
    """The whole state of an evaluation. `advance.advance` adds minutes to it, `assess.assess` judges it.

    `weights` are the stages' weights in percent. `stage` is the latest stage seen; `last_stage` is that of the last
    counts, which may be late ones of an earlier stage. `target_minute` and `baseline_minute` are the latest minutes in
    which the arm was served. `stage_minute` is the stage's first minute, and `looks` are those at its cohort so far
    (see `cohort`); formula 3 has neither.

    `usual` are the config's requests of the day before the start, whatever version served them; the blocks of both arms
    `together` are compared with them, and for a `rise` with earlier blocks (not by formula 3). The `_weights` are
    latencies by bin, weighted as in `Strata`.
    """

    policy: Policy
    weights: tuple[int, ...]
    sticky: bool
    metrics: Mapping[Metric, MetricState]
    latency: Learning
    cost: Learning
    formula: int = FORMULA
    minutes: int = 0
    last_minute: int = 0
    last_stage: int = 0
    target_minute: int = 0
    baseline_minute: int = 0
    stage: int = 0
    stage_minute: int = 0
    looks: int = 0
    stage_target: Served = field(default_factory=Served)
    stage_baseline: Served = field(default_factory=Served)
    block: Block = EMPTY
    new_users: UserBlock = NOBODY
    sample_ratio: SampleRatio = field(default_factory=SampleRatio)
    target: ArmTotals = field(default_factory=ArmTotals)
    baseline: ArmTotals = field(default_factory=ArmTotals)
    target_weights: WeightedHistogram = field(default_factory=dict)
    baseline_weights: WeightedHistogram = field(default_factory=dict)
    usual: Served = field(default_factory=Served)
    together: Together = field(default_factory=Together)
    rise: Rise = field(default_factory=Rise)

    @property
    def stage_requests(self) -> int:
        return self.stage_target.requests

    @property
    def usual_share(self) -> float | None:
        """Returns the unanswered share of the day before; None if it had too few requests to say what is usual."""
        return self.usual.unanswered_share if self.usual.requests >= MIN_USUAL else None

    def waiting(self, metric: Metric) -> float:
        return beginning(self.weights, FIRST_SHARE[metric], after=self.stage)


def initial_state(
    policy: Policy,
    *,
    latency: Histogram,
    cost: Histogram,
    weights: Sequence[int],
    sticky: bool,
    usual_unanswered: tuple[int, int] = (0, 0),
) -> State:
    """`latency` and `cost` are the config's last 24 hours by bin, as in `ArmCounts`; they may be empty.
    `usual_unanswered` are the unanswered and all requests of these hours.

    `weights` are the stages' in percent, in order; `sticky` when users or sessions keep their arm. Raises ValueError
    without any stage.
    """
    if not weights:
        raise ValueError("weights: a rollout has at least one stage")
    design = None if sticky else 1.0

    def begin(metric: Metric, tilts: int, safe: int) -> MetricState:
        first = math.log(beginnings(tuple(weights), FIRST_SHARE[metric])[0])
        return MetricState(
            worse=(first,) * tilts,
            safe=(0.0,) * safe,
            design=design,
            next_design=design,
            users=UserState((first,) * TILTS_OF[metric], looks=(0.0,) * len(LOOKS)) if sticky else None,
            answering=Answering() if metric in RATES else None,
        )

    return State(
        policy=policy,
        weights=tuple(weights),
        sticky=sticky,
        metrics=alike(
            {
                # Safety is tested by rarity and, for rates, at the margin's odds or, for slow requests, at five odds.
                **{metric: begin(metric, len(ODDS), 2) for metric in RATES},
                Metric.LATENCY_P95: begin(Metric.LATENCY_P95, len(ODDS), len(ODDS) + 1),
                Metric.LATENCY_AVERAGE: begin(Metric.LATENCY_AVERAGE, len(TILTS), len(TILTS)),
                Metric.COST: begin(Metric.COST, len(TILTS), len(TILTS)),
            }
        ),
        latency=Learning(latency, reference_from(latency)),
        cost=Learning(cost, reference_from(cost)),
        usual=Served(requests=usual_unanswered[1], unanswered=usual_unanswered[0]),
    )


def alike(metrics: Mapping[Metric, MetricState]) -> Mapping[Metric, MetricState]:
    known: dict[MetricState, MetricState] = {}
    return {metric: known.setdefault(one, one) for metric, one in metrics.items()}


def at_stage(state: State, stage: int) -> State:
    """For a stage without a minute yet: requests of earlier stages do not count towards its minima."""
    if state.stage == stage:
        return state
    # The processes of this stage do not begin here, because the stage has no evidence yet.
    return replace(
        state,
        stage_target=Served(),
        stage_baseline=Served(),
        together=Together(),
        rise=state.rise.at_next_stage(),
    )
