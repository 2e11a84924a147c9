from __future__ import annotations

import random
from dataclasses import dataclass, replace

from benchmarks.quality.traffic import Arms, Traffic
from benchmarks.quality.worlds import World
from benchmarks.rollouts.runs import traffic as traffic_of_metrics
from benchmarks.rollouts.worlds import World as WorldOfMetrics
from rollouts.evaluation import Action, Decision, Policy, State, Status, advance, assess, initial_state
from rollouts.evaluation.policy import CONTROLLED_WEIGHT
from rollouts.evaluation.quality import (
    QualityAssessment,
    QualityMinute,
    QualityState,
    advance_quality,
    assess_quality,
    initial_quality,
)
from rollouts.evaluation.state import at_stage
from rollouts.evaluation.verdict import decided
from rollouts.states import DEFAULT_STAGES, Stage

WEIGHTS = tuple(stage.weight for stage in DEFAULT_STAGES)


@dataclass(slots=True)
class Run:
    """`failed_pairs` are the pairs of the first evaluator when scores rolled the rollout back, `passed_pairs` those
    when all evaluators were content, `unscored_tasks` the tasks of the arm with more of them when missing scores held
    it.

    `rolled_back` is by scores or, if present, by other metrics; `held` by scores that did not roll back.
    """

    rolled_back: bool = False
    held: bool = False
    failed_pairs: int | None = None
    unscored_tasks: int | None = None
    passed: bool = False
    passed_pairs: int | None = None
    completed_minute: int | None = None
    pairs: int = 0
    minutes: int = 0


def simulate(world: World, seed: str) -> Run:
    """The same seed gives the same run on any machine."""
    walk = _Walk(world, seed)
    while walk.goes_on:
        walk.step()
    return walk.run


class _Metrics:
    def __init__(self, world: World, seed: str) -> None:
        self._source = traffic_of_metrics(WorldOfMetrics(values=True, rate=world.rate), seed)
        latency, cost = self._source.reference()
        self._state: State = initial_state(
            Policy(),
            latency=latency,
            cost=cost,
            weights=WEIGHTS,
            sticky=False,
            usual_unanswered=self._source.usual_unanswered(),
        )
        self._seen: tuple[State, int, int] | None = None
        self._decision = Decision.WAIT

    def requests(self, minute: int, number: int, stage: Stage, elapsed: int) -> Arms:
        [counts] = self._source.minute(minute, number, stage.weight)
        target, baseline = counts.target, counts.baseline
        if target.requests or baseline.requests:
            self._state = advance(self._state, replace(counts, settling=elapsed <= stage.settle_minutes))
        return (-1,) * target.answered, (-1,) * baseline.answered

    def decision(self, number: int, stage: Stage, elapsed: int) -> Decision:
        # Time alone decides something at the end of the shortest duration only.
        seen = self._state, number, min(elapsed, stage.min_duration_minutes)
        if self._seen is None or seen[0] is not self._seen[0] or seen[1:] != self._seen[1:]:
            state = at_stage(self._state, number)
            self._decision, _ = decided(state, assess(state), stage, elapsed_minutes=elapsed)
            self._seen = seen
        return self._decision


class _Walk:
    def __init__(self, world: World, seed: str) -> None:
        rng = random.Random(seed)
        self._world = world
        self._state: QualityState = initial_quality(world.quality(rng), weights=WEIGHTS, sticky=world.users > 0)
        self._found: QualityAssessment = assess_quality(self._state)
        self._traffic = Traffic(world, rng)
        self._metrics = _Metrics(world, seed) if world.metrics else None
        self._index = self._minute = self._started = self._requests = 0
        self.run = Run()
        self.goes_on = True

    def step(self) -> None:
        self._minute += 1
        stage, elapsed = DEFAULT_STAGES[self._index], self._minute - self._started
        if stage.weight >= 100:
            # Without a baseline there is nothing left to judge.
            self.run.completed_minute = self._minute - 1 + stage.min_duration_minutes
            self.goes_on = False
            return
        requests = self._next(stage, elapsed)
        self._requests += len(requests[0])
        self._judge(self._traffic.minute(self._minute, self._index + 1, requests))
        decision = self._decision(stage, elapsed)
        self.run.minutes, self.run.rolled_back = self._minute, decision is Decision.ROLL_BACK
        if decision is Decision.PROMOTE:
            self._index, self._started, self._requests = self._index + 1, self._minute, 0
        ended = self.run.rolled_back or (self._world.watched and self.run.passed)
        self.goes_on = not ended and self._minute < self._world.minutes

    def _next(self, stage: Stage, elapsed: int) -> Arms:
        if self._metrics is not None:
            return self._metrics.requests(self._minute, self._index + 1, stage, elapsed)
        return self._traffic.requests(stage.weight)

    def _judge(self, tasks: QualityMinute | None) -> None:
        if tasks is None:
            return
        before, run = self._state, self.run
        self._state = advance_quality(before, tasks)
        if self._world.users or _blocks(before) != _blocks(self._state):
            self._found = assess_quality(self._state)
        found, one = self._found, self._state.of("one")
        run.pairs = one.pairs
        if not found.required and not run.passed:
            run.passed, run.passed_pairs = True, one.pairs
        if found.unscored and run.unscored_tasks is None:
            run.unscored_tasks = max(one.target.due, one.baseline.due)
        if found.action is Action.ROLL_BACK and run.failed_pairs is None:
            run.failed_pairs = one.pairs

    def _decision(self, stage: Stage, elapsed: int) -> Decision:
        if self._found.action is Action.ROLL_BACK:
            return Decision.ROLL_BACK
        if self._found.action is Action.HOLD and not self._world.watched:
            self.run.held = True
            return Decision.WAIT
        decision = self._by_metrics(stage, elapsed)
        if decision is not Decision.PROMOTE:
            return decision
        passes = self._found.status is Status.PASSING or stage.weight < CONTROLLED_WEIGHT
        return decision if passes and not self._found.unscored else Decision.WAIT

    def _by_metrics(self, stage: Stage, elapsed: int) -> Decision:
        if self._metrics is not None:
            return self._metrics.decision(self._index + 1, stage, elapsed)
        met = elapsed >= stage.min_duration_minutes and self._requests >= stage.min_requests
        return Decision.PROMOTE if met else Decision.WAIT


def _blocks(state: QualityState) -> tuple[int, int]:
    one = state.of("one")
    return one.target.due, one.baseline.due
