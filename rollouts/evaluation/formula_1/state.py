"""The state of an evaluation between two minutes: a few numbers for each metric, and enough to show the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from rollouts.evaluation.evidence import log_mean
from rollouts.evaluation.formula_1.policy import Metric, Policy
from rollouts.evaluation.formula_1.sample_ratio import SampleRatio
from rollouts.evaluation.grid import Histogram, WeightedHistogram
from rollouts.evaluation.learning import Learning
from rollouts.evaluation.reference import reference_from
from rollouts.evaluation.strata import Strata

FORMULA = 1
"""The version of the formulas. It changes when the same minutes would give another state."""


@dataclass(frozen=True, slots=True)
class MetricState:
    """The evidence on one metric. `worse` and `safe` are logarithms of e-values: that the target is worse, that it
    is better than the margin. `peak` is the highest evidence of `worse` so far; `design` the factor by which
    clustered requests count for less."""

    worse: tuple[float, ...]
    safe: tuple[float, ...]
    peak: float = 0.0
    design: float = 1.0
    strata: Strata = field(default_factory=Strata)

    @property
    def evidence(self) -> float:
        """Returns ln E, the evidence that the target is worse."""
        return log_mean(self.worse, self.design)

    @property
    def safety(self) -> float:
        """Returns ln S, the evidence that the target keeps within its margin."""
        return log_mean(self.safe, self.design)


@dataclass(frozen=True, slots=True)
class ArmTotals:
    """Plain sums over all minutes without any weights: the figures of the request log for one arm."""

    requests: int = 0
    errors: int = 0
    answered: int = 0
    latency_ms: int = 0
    priced: int = 0
    cost_usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class State:
    """The whole state of an evaluation. `advance.advance` adds minutes to it, `assess.assess` judges it.

    `stage_requests` counts the target arm's requests in the current stage. The `_weights` are latencies by bin,
    weighted as in `Strata`.
    """

    policy: Policy
    metrics: Mapping[Metric, MetricState]
    latency: Learning
    cost: Learning
    formula: int = FORMULA
    minutes: int = 0
    last_minute: int = 0
    stage: int = 0
    stage_requests: int = 0
    sample_ratio: SampleRatio = field(default_factory=SampleRatio)
    target: ArmTotals = field(default_factory=ArmTotals)
    baseline: ArmTotals = field(default_factory=ArmTotals)
    target_weights: WeightedHistogram = field(default_factory=dict)
    baseline_weights: WeightedHistogram = field(default_factory=dict)


def initial_state(policy: Policy, *, latency: Histogram, cost: Histogram) -> State:
    """Returns the state at the start. `latency` and `cost` are the config's last 24 hours by bin, as in `ArmCounts`;
    they may be empty."""
    return State(
        policy=policy,
        metrics={
            # Safety is tested by rarity and, for errors, at the margin's odds or, for slow requests, at five odds.
            Metric.ERROR_RATE: MetricState(worse=(0.0,) * 5, safe=(0.0,) * 2),
            Metric.LATENCY_P95: MetricState(worse=(0.0,) * 5, safe=(0.0,) * 6),
            Metric.LATENCY_AVERAGE: MetricState(worse=(0.0,) * 4, safe=(0.0,) * 4),
            Metric.COST: MetricState(worse=(0.0,) * 4, safe=(0.0,) * 4),
        },
        latency=Learning(latency, reference_from(latency)),
        cost=Learning(cost, reference_from(cost)),
    )


def at_stage(state: State, stage: int) -> State:
    """Returns the state at a stage that has no minute yet: the requests of earlier stages do not count towards its
    minima."""
    return state if state.stage == stage else replace(state, stage=stage, stage_requests=0)
