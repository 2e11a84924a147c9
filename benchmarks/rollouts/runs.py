from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.rollouts.individual import Hanging, Individual
from benchmarks.rollouts.peers import Pooled, first_alarms
from benchmarks.rollouts.traffic import Plain, Traffic
from benchmarks.rollouts.worlds import Fault, World
from rollouts.evaluation import (
    Action,
    Assessment,
    Decision,
    Metric,
    MinuteCounts,
    Policy,
    State,
    Status,
    advance,
    assess,
    figures,
    initial_state,
)
from rollouts.evaluation.cohort import due_look, weight_before
from rollouts.evaluation.policy import ALPHA, RATES
from rollouts.evaluation.state import at_stage
from rollouts.evaluation.terms import Reason
from rollouts.evaluation.verdict import decided
from rollouts.states import DEFAULT_STAGES, Stage

Alarm = tuple[int, int]
"""The minute, counted from 1, and the target's requests until its end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """With `auto` verdicts promote and roll back; otherwise the stages change by their minima alone.

    The run ends after `minutes`, at the end of the stages, or as soon as `until` fails. With `peers` the usual tests
    see the same traffic, and the run continues for them to the end of the plan. Unless it `settles`, the first minutes
    of a stage are judged like all others.
    """

    auto: bool = False
    minutes: int = 1440
    until: Metric | None = None
    intervals: bool = False
    peers: bool = False
    settles: bool = True
    policy: Policy = field(default_factory=Policy)


@dataclass(slots=True)
class Run:
    """The target's requests, or minutes, until each event first happened; absent if it never did.

    `worse_for_all` are the minutes in which the rollout was held because both arms did worse than the day before.
    `weight` is the highest that the verdict let the target have; `harmed_after` the target's requests before the harm
    began in `harmed_minute`; `alarms` are those of the usual tests and, as `verdict`, of errors or of requests without
    an answer.
    """

    failed: dict[Metric, int] = field(default_factory=dict)
    passed: dict[Metric, int] = field(default_factory=dict)
    all_passed: int | None = None
    all_passed_minute: int | None = None
    failed_minute: int | None = None
    sample_ratio_minute: int | None = None
    alarms: dict[str, Alarm] = field(default_factory=dict)
    rolled_back: bool = False
    completed: bool = False
    weight: int = 0
    minutes: int = 0
    worse_for_all: int = 0
    harmed_after: int | None = None
    harmed_minute: int | None = None
    missed: dict[Metric, int] = field(default_factory=dict)


VERDICT = "verdict"
_WEIGHTS = tuple(stage.weight for stage in DEFAULT_STAGES)


def simulate(
    world: World, plan: Plan, seed: str, watch: Callable[[Sequence[MinuteCounts]], None] = lambda counts: None
) -> Run:
    """The same seed gives the same run on any machine. `watch` is called with the counts of each minute."""
    source = traffic(world, seed)
    walk = _Walk(world, plan, source, watch)
    while walk.goes_on:
        walk.step()
    if plan.peers:
        walk.go_on_for_peers()
    return walk.run


def traffic(world: World, seed: str) -> Traffic:
    rng = np.random.default_rng([zlib.crc32(seed.encode()), len(seed), *seed.encode()])
    if world.is_plain:
        return Plain(world, rng)
    return (Hanging if world.fault is Fault.HANGING else Individual)(world, rng)


class _Walk:
    def __init__(
        self, world: World, plan: Plan, source: Traffic, watch: Callable[[Sequence[MinuteCounts]], None]
    ) -> None:
        self._watch = watch
        self._world, self._plan, self._source = world, plan, source
        latency, cost = source.reference()
        self._state = initial_state(
            plan.policy,
            latency=latency,
            cost=cost,
            weights=_WEIGHTS,
            sticky=world.is_sticky,
            usual_unanswered=source.usual_unanswered(),
        )
        self._index, self._started, self._minute = 0, 0, 0
        self._stage_requests = 0
        self._pooled: list[tuple[int, int, int, int, int]] = []
        self.run = Run()
        self.goes_on = True

    def step(self) -> None:
        run, plan, stage = self.run, self._plan, DEFAULT_STAGES[self._index]
        counts = self._next()
        run.minutes, run.weight = self._minute, stage.weight
        before = self._state
        self._watch(counts)
        for one in counts:
            self._state = advance(self._state, one)
        elapsed = self._minute - self._started
        if self._state is before and elapsed != stage.min_duration_minutes:
            # The last assessment still holds, because nothing was recorded and no minimum was met by time alone.
            self.goes_on = self._minute < plan.minutes
            return
        assessment, decision = self._look(stage, elapsed)
        self._note(assessment)
        run.rolled_back = decision is Decision.ROLL_BACK
        if decision is Decision.PROMOTE:
            self._promote()
            run.completed = self._index == len(DEFAULT_STAGES)
        ended = run.rolled_back or run.completed or plan.until in run.failed
        self.goes_on = not ended and self._minute < plan.minutes

    def go_on_for_peers(self) -> None:
        while self._minute < self._plan.minutes and self._index < len(DEFAULT_STAGES):
            stage = DEFAULT_STAGES[self._index]
            if stage.weight >= 100:
                break
            self._next()
            if self._minima_met(stage, self._minute - self._started):
                self._promote()
        self.run.alarms.update(first_alarms(Pooled.of(self._pooled)))

    def _next(self) -> list[MinuteCounts]:
        """Returns nothing where nothing was recorded: the request log has no such minutes."""
        self._minute += 1
        number, weight = self._index + 1, DEFAULT_STAGES[self._index].weight
        if number == self._world.harm_from and self.run.harmed_after is None:
            self.run.harmed_after, self.run.harmed_minute = self._state.target.requests, self._minute
        look = self._world.is_sticky and self._state.stage == number and due_look(self._state, self._minute) is not None
        counts = self._source.minute(self._minute, number, weight, look=look)
        cohort = self._source.cohort(weight_before(_WEIGHTS, number)) if look else {}
        self._stage_requests += sum(
            one.target.requests + one.target.uncompared for one in counts if one.stage == number
        )
        if self._plan.peers and weight < 100:
            self._pooled.append((number, *_pooled(counts)))
        settling = self._plan.settles and self._minute - self._started <= DEFAULT_STAGES[self._index].settle_minutes
        return [
            replace(one, settling=settling, cohort=cohort) if one.stage == number and (settling or cohort) else one
            for one in counts
            if one.target.units or one.baseline.units or one.target.requests
        ]

    def _promote(self) -> None:
        self._index, self._started, self._stage_requests = self._index + 1, self._minute, 0

    def _minima_met(self, stage: Stage, elapsed: int) -> bool:
        return elapsed >= stage.min_duration_minutes and self._stage_requests >= stage.min_requests

    def _look(self, stage: Stage, elapsed: int) -> tuple[Assessment, Decision]:
        state = at_stage(self._state, self._index + 1)
        assessment = assess(state)
        if self._plan.auto:
            decision, reason = decided(state, assessment, stage, elapsed_minutes=elapsed)
            self.run.worse_for_all += reason is Reason.WORSE_FOR_ALL
            return assessment, decision
        met = self._minima_met(stage, elapsed)
        return assessment, Decision.PROMOTE if met else Decision.WAIT

    def _note(self, assessment: Assessment) -> None:
        run, requests, minute = self.run, assessment.target_requests, self._minute
        for metric, one in assessment.metrics.items():
            if one.judged and one.status is Status.FAILING:
                run.failed.setdefault(metric, requests)
                run.failed_minute = run.failed_minute or minute
                if metric in RATES:
                    run.alarms.setdefault(VERDICT, (minute, requests))
            elif one.judged and one.status is Status.PASSING:
                run.passed.setdefault(metric, requests)
        if run.all_passed is None and assessment.status is Status.PASSING:
            run.all_passed, run.all_passed_minute = requests, minute
        if run.sample_ratio_minute is None and assessment.sample_ratio_alarm:
            run.sample_ratio_minute = minute
        if self._plan.intervals and requests >= 20:
            _note_intervals(run, self._state)


def _pooled(counts: Iterable[MinuteCounts]) -> tuple[int, int, int, int]:
    totals = [0, 0, 0, 0]
    for one in counts:
        totals[0] += one.target.requests
        totals[1] += one.target.unanswered
        totals[2] += one.baseline.requests
        totals[3] += one.baseline.unanswered
    return totals[0], totals[1], totals[2], totals[3]


def _note_intervals(run: Run, state: State) -> None:
    for metric in Metric:
        shown = figures(state, metric)
        low, high = shown.low, shown.high
        if (low is not None and low > 0) or (high is not None and high < 0):
            run.missed.setdefault(metric, state.target.requests)


def only(*metrics: Metric) -> Policy:
    """Returns a policy in which the other metrics decide nothing, so that these can be watched to their end."""
    return Policy(
        **{one.value: Action.ROLL_BACK if one in metrics else Action.IGNORE for one in ALPHA}  # type: ignore[arg-type]
    )
