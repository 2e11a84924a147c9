"""One simulated rollout: minute by minute through the default stages, looked at every minute."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from benchmarks.rollout_traffic import World, traffic
from rollouts.evaluation import (
    Action,
    Assessment,
    Decision,
    Metric,
    Policy,
    State,
    Status,
    advance,
    assess,
    decide,
    figures,
    initial_state,
)
from rollouts.states import DEFAULT_STAGES, Stage

_Z = 1.96


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run goes. `auto`: verdicts promote and roll back; else the stages change by their minima alone.

    It ends after `minutes`, at the end of the stages, or as soon as `until` fails.
    """

    auto: bool = False
    minutes: int = 1440
    until: Metric | None = None
    intervals: bool = False
    policy: Policy = field(default_factory=Policy)


@dataclass(slots=True)
class Run:
    """What became of a run: requests of the target arm, or minutes, until each first happened; absent if never."""

    failed: dict[Metric, int] = field(default_factory=dict)
    passed: dict[Metric, int] = field(default_factory=dict)
    all_passed: int | None = None
    all_passed_minute: int | None = None
    failed_minute: int | None = None
    z_test_minute: int | None = None
    alarm_minute: int | None = None
    rolled_back: bool = False
    completed: bool = False
    minutes: int = 0
    missed: set[Metric] = field(default_factory=set)


def simulate(world: World, plan: Plan, seed: str) -> Run:
    """The same seed gives the same run, on any machine."""
    rng = random.Random(seed)
    source = traffic(world, rng)
    latency, cost = source.reference()
    state, run = initial_state(plan.policy, latency=latency, cost=cost), Run()
    stage_index, started = 0, 0
    for minute in range(1, plan.minutes + 1):
        stage = DEFAULT_STAGES[stage_index]
        state = advance(state, source.minute(minute, stage_index + 1, stage.weight))
        run.minutes = minute
        assessment, decision = _look(plan, state, stage, minute - started)
        _note(run, world, plan, state, assessment, minute)
        if plan.until in run.failed:
            break
        if decision is Decision.ROLL_BACK:
            run.rolled_back = True
            break
        if decision is Decision.PROMOTE:
            stage_index, started = stage_index + 1, minute
            if stage_index == len(DEFAULT_STAGES):
                run.completed = True
                break
    return run


def _look(plan: Plan, state: State, stage: Stage, elapsed: int) -> tuple[Assessment, Decision]:
    if plan.auto:
        verdict = decide(state, stage, elapsed_minutes=elapsed)
        return verdict.assessment, verdict.decision
    met = elapsed >= stage.min_duration_minutes and state.stage_requests >= stage.min_requests
    return assess(state), Decision.PROMOTE if met else Decision.WAIT


def _note(run: Run, world: World, plan: Plan, state: State, assessment: Assessment, minute: int) -> None:
    requests = assessment.target_requests
    for metric, one in assessment.metrics.items():
        if one.judged and one.status is Status.FAILING:
            run.failed.setdefault(metric, requests)
            run.failed_minute = run.failed_minute or minute
        elif one.judged and one.status is Status.PASSING:
            run.passed.setdefault(metric, requests)
    if run.all_passed is None and assessment.status is Status.PASSING:
        run.all_passed, run.all_passed_minute = requests, minute
    if run.alarm_minute is None and assessment.sample_ratio_alarm:
        run.alarm_minute = minute
    if run.z_test_minute is None and _z_test(state):
        run.z_test_minute = minute
    if plan.intervals and requests >= 20:
        _note_intervals(run, world, state)


def _note_intervals(run: Run, world: World, state: State) -> None:
    """The truth here is no difference at all."""
    for metric in Metric:
        shown = figures(state, metric)
        low, high = shown.low, shown.high
        if (low is not None and low > 0) or (high is not None and high < 0):
            run.missed.add(metric)


def _z_test(state: State) -> bool:
    """The usual test of two pooled rates at 5 %, looked at each minute, once the target has 20 requests."""
    target, baseline = state.target, state.baseline
    if target.requests < 20 or not baseline.requests:
        return False
    both = target.requests + baseline.requests
    rate = (target.errors + baseline.errors) / both
    deviation = math.sqrt(rate * (1 - rate) * (1 / target.requests + 1 / baseline.requests))
    difference = target.errors / target.requests - baseline.errors / baseline.requests
    return deviation > 0 and difference > _Z * deviation


def only(metric: Metric) -> Policy:
    """A policy in which the other metrics decide nothing, so that one can be watched to its end."""
    return Policy(
        **{one.value: Action.ROLL_BACK if one is metric else Action.IGNORE for one in Metric}  # type: ignore[arg-type]
    )
