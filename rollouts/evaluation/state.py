"""The state of an evaluation between two minutes: a few numbers for each metric, and enough to show the figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType

from rollouts.evaluation.blocks import EMPTY, Block
from rollouts.evaluation.policy import RATES, Metric, Policy
from rollouts.evaluation.statistics.clustering import Variation
from rollouts.evaluation.statistics.evidence import ODDS, TILTS, log_mean
from rollouts.evaluation.statistics.grid import Histogram, WeightedHistogram
from rollouts.evaluation.statistics.learning import Learning
from rollouts.evaluation.statistics.mixture import RATES_FIRST_SHARE, VALUES_FIRST_SHARE, beginnings
from rollouts.evaluation.statistics.reference import reference_from
from rollouts.evaluation.statistics.sample_ratio import SampleRatio
from rollouts.evaluation.statistics.strata import AnsweredRates, Strata
from rollouts.evaluation.together import MIN_USUAL, Together
from rollouts.evaluation.users import NOBODY, TILTS_OF, UserBlock

FIRST_SHARE: Mapping[Metric, float] = MappingProxyType(
    {metric: RATES_FIRST_SHARE if metric in RATES else VALUES_FIRST_SHARE for metric in Metric}
)

FORMULA = 3
"""The number of the formula. It changes when the same minutes would give another state."""


class UnknownFormulaError(ValueError):
    """Raised for the state or verdict of another formula, whose numbers mean something else."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"This rollout was judged by formula {number}, which this version does not have; it has formula {FORMULA}."
            " Roll it back and create it anew."
        )


@dataclass(frozen=True, slots=True)
class UserState:
    """The evidence that users who are new to the target fare worse, each user counted once. The fields mean the same as
    in `MetricState`."""

    worse: tuple[float, ...]
    evidence: float = 0.0
    peak: float = 0.0


@dataclass(frozen=True, slots=True)
class MetricState:
    """The evidence on one metric.

    `worse` and `safe` are logarithms of e-values by tilt: that the target is worse, summed over the processes that have
    begun (see `mixture`), and that it is better than the margin. `evidence` is ln E, `peak` the highest so far.

    `answered_rates` are the rates by which the size of a difference is measured, for metrics that count requests.

    The other fields are for sticky allocation. Every block counts for `design` times less, as known before the block
    (None: not known, so nothing is judged); `next_design` applies to the blocks after it, and `block_design` is that of
    the latest block by itself, which counts for so many times less if that is more (see `one_user`). `variation` is
    that of the baseline, against which the design is measured.
    """

    worse: tuple[float, ...]
    safe: tuple[float, ...]
    evidence: float = 0.0
    peak: float = 0.0
    design: float | None = 1.0
    next_design: float | None = 1.0
    strata: Strata = field(default_factory=Strata)
    answered_rates: AnsweredRates = field(default_factory=AnsweredRates)
    variation: Variation = field(default_factory=Variation)
    users: UserState | None = None
    block_design: float = 1.0

    def counting_for(self, design: float | None, next_design: float | None) -> MetricState:
        """Returns the metric with other designs. It is written out, because it runs twice a minute for every metric."""
        return MetricState(
            self.worse,
            self.safe,
            self.evidence,
            self.peak,
            design,
            next_design,
            self.strata,
            self.answered_rates,
            self.variation,
            self.users,
            self.block_design,
        )

    @property
    def safety(self) -> float:
        """Returns ln S, the evidence that the target keeps within its margin."""
        return log_mean(self.safe)


@dataclass(frozen=True, slots=True)
class ArmTotals:
    """Plain sums over all minutes without any weights: the figures of the request log for one arm."""

    requests: int = 0
    unanswered: int = 0
    judged: int = 0
    errors: int = 0
    answered: int = 0
    contract: int = 0
    truncated: int = 0
    fallback: int = 0
    empty: int = 0
    stopped: int = 0
    latency_ms: int = 0
    priced: int = 0
    cost_usd: Decimal = Decimal(0)
    reasons: Mapping[str, int] = field(default_factory=dict)
    uncompared: int = 0
    uncompared_unanswered: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Served:
    """The requests of one arm in the current stage, and those of them that got no proper answer; of both, how many are
    not compared (see `ArmCounts`)."""

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
        """Returns the requests that are compared."""
        return Served(self.requests - self.uncompared, self.unanswered - self.uncompared_unanswered)


@dataclass(frozen=True, slots=True)
class State:
    """The whole state of an evaluation. `advance.advance` adds minutes to it, `assess.assess` judges it.

    `weights` are the stages' weights in percent. `stage` is the latest stage that was seen; `last_stage` is the stage
    of the last counts, which may be late ones of an earlier stage. `target_minute` and `baseline_minute` are the latest
    minutes in which the arm was served. `usual` are the config's requests of the day before
    the start, whatever version served them, with which the blocks of both arms `together` are compared. The `_weights`
    are latencies by bin, weighted as in `Strata`.
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

    @property
    def stage_requests(self) -> int:
        """Returns the number of the target's requests in the current stage, answered or not."""
        return self.stage_target.requests

    @property
    def usual_share(self) -> float | None:
        """Returns the unanswered share of the day before; None if that had too few requests to say what is usual."""
        return self.usual.unanswered_share if self.usual.requests >= MIN_USUAL else None

    def waiting(self, metric: Metric) -> float:
        """Returns the weight of the metric's processes that have not begun."""
        return math.fsum(beginnings(self.weights, FIRST_SHARE[metric])[max(self.stage, 1) :])


def initial_state(
    policy: Policy,
    *,
    latency: Histogram,
    cost: Histogram,
    weights: Sequence[int],
    sticky: bool,
    usual_unanswered: tuple[int, int] = (0, 0),
) -> State:
    """Returns the state at the start. `latency` and `cost` are the config's last 24 hours by bin, as in `ArmCounts`;
    they may be empty. `usual_unanswered` are the unanswered and all requests of these hours. `weights` are those of
    the stages in percent, in order; `sticky` when users or sessions keep their arm.

    Raises ValueError without any stage.
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
            users=UserState((first,) * TILTS_OF[metric]) if sticky else None,
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
    """Returns the metrics with equal ones as one object, which is advanced once for all of them."""
    known: dict[MetricState, MetricState] = {}
    return {metric: known.setdefault(one, one) for metric, one in metrics.items()}


def at_stage(state: State, stage: int) -> State:
    """Returns the state at a stage that has no minute yet: the requests of earlier stages do not count towards its
    minima."""
    if state.stage == stage:
        return state
    # The processes of this stage do not begin here, because the stage has no evidence yet.
    return replace(state, stage_target=Served(), stage_baseline=Served(), together=Together())
