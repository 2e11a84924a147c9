"""What the automatic verdict promises, and the simulated rollouts that hold it to that."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.binomial import limits
from benchmarks.rollout_runs import Plan, Run, only
from benchmarks.rollout_traffic import World
from rollouts.evaluation import Metric

ERRORS, SLOW, AVERAGE, COST = Metric
_NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Cell:
    """So many runs of one world under one plan."""

    world: World
    plan: Plan
    runs: int


_ERROR_RATES, _TRAFFIC = (0.005, 0.02, 0.10), (10, 60, 300)
_STICKY = [(users, icc) for users in (300, 2000) for icc in (0.05, 0.2)]
_WATCH_ERRORS = Plan(until=ERRORS, policy=only(ERRORS))


def _watch(metric: Metric) -> Plan:
    return Plan(until=metric, policy=only(metric))


CELLS: Mapping[str, Cell] = {
    "harmless": Cell(World(values=True), Plan(auto=True), 1000),
    "harmless, spells": Cell(World(values=True, spells=True), Plan(auto=True), 1000),
    "harmless, 10/min": Cell(World(values=True, rate=10), Plan(auto=True), 300),
    **{
        f"errors {rate:.1%} at {traffic}/min": Cell(
            World(errors=rate, rate=traffic), _WATCH_ERRORS, 400 if traffic == 300 else 1000
        )
        for rate in _ERROR_RATES
        for traffic in _TRAFFIC
    },
    "errors, spells": Cell(World(spells=True), _WATCH_ERRORS, 1000),
    "errors 2 to 4 %": Cell(World(target_errors=0.04), _WATCH_ERRORS, 400),
    "errors 2 to 6 %": Cell(World(target_errors=0.06), _WATCH_ERRORS, 400),
    "errors 2 to 50 %": Cell(World(target_errors=0.5), _WATCH_ERRORS, 400),
    "errors 2 to 100 %": Cell(World(target_errors=1.0), _WATCH_ERRORS, 400),
    "latency +30 %": Cell(World(values=True, latency_factor=1.3), _watch(AVERAGE), 300),
    "latency doubled": Cell(World(values=True, latency_factor=2.0), _watch(AVERAGE), 300),
    "p95 +50 %": Cell(World(values=True, latency_factor=1.5), _watch(SLOW), 300),
    "margin of errors, 2 %": Cell(World(target_errors=0.04), Plan(policy=only(ERRORS)), 1000),
    "margin of errors, 0.5 %": Cell(World(errors=0.005, target_errors=0.015), Plan(policy=only(ERRORS)), 1000),
    "margin of latency and cost": Cell(World(values=True, latency_factor=1.25, cost_factor=1.25), Plan(), 500),
    **{
        f"sticky, {users} users, ICC {icc}": Cell(World(users=users, icc=icc), _WATCH_ERRORS, 400)
        for users, icc in _STICKY
    },
    "sticky, clustering unknown": Cell(World(users=300, icc=0.2, clustering=False), _WATCH_ERRORS, 200),
    "records lost": Cell(World(lost=0.2), Plan(), 300),
    "intervals": Cell(World(values=True), Plan(intervals=True), 300),
}

Results = Mapping[str, Sequence[Run]]


@dataclass(frozen=True, slots=True)
class Promise:
    """A share of runs that is at most, or at least, `bound`. `detail` adds what else is worth knowing of these runs."""

    text: str
    cells: tuple[str, ...]
    bound: float
    happened: Callable[[Run], bool]
    at_least: bool = False
    detail: Callable[[Sequence[Run]], str] = lambda runs: ""

    def outcome(self, results: Results) -> Outcome:
        runs = [run for cell in self.cells for run in results[cell]]
        return Outcome(self, sum(map(self.happened, runs)), len(runs), self.detail(runs))


@dataclass(frozen=True, slots=True)
class Outcome:
    promise: Promise
    happened: int
    runs: int
    detail: str

    @property
    def share(self) -> float:
        return self.happened / self.runs

    @property
    def limits(self) -> tuple[float, float]:
        return limits(self.happened, self.runs)

    @property
    def broken(self) -> bool:
        """The promised bound is not compatible with what was counted."""
        low, high = self.limits
        return high < self.promise.bound if self.promise.at_least else low > self.promise.bound

    @property
    def standing(self) -> str:
        if self.broken:
            return "**broken**"
        low, high = self.limits
        shown = low >= self.promise.bound if self.promise.at_least else high <= self.promise.bound
        met = self.share >= self.promise.bound if self.promise.at_least else self.share <= self.promise.bound
        return "kept" if shown else "kept, within chance" if met else "missed, within chance"


def _failed(metric: Metric) -> Callable[[Run], bool]:
    return lambda run: metric in run.failed


def _within(metric: Metric, requests: int) -> Callable[[Run], bool]:
    return lambda run: run.failed.get(metric, _NEVER) <= requests


def _passed(metric: Metric) -> Callable[[Run], bool]:
    return lambda run: metric in run.passed


def _missed(metric: Metric) -> Callable[[Run], bool]:
    return lambda run: metric in run.missed


def _requests(metric: Metric) -> Callable[[Sequence[Run]], str]:
    """Target requests until it failed: how many half, and nine of ten runs needed."""

    def told(runs: Sequence[Run]) -> str:
        needed = sorted(run.failed.get(metric, _NEVER) for run in runs)
        half, most = (needed[math.ceil(share * len(needed)) - 1] for share in (0.5, 0.9))
        return f"half by {half:.0f}, 90 % by {most:.0f} target requests" if most < _NEVER else f"half by {half:.0f}"

    return told


def _z_tests(runs: Sequence[Run]) -> str:
    alarmed = sum(run.z_test_minute is not None for run in runs)
    return f"a z-test each minute: {alarmed / len(runs):.1%}"


def _passing(runs: Sequence[Run]) -> str:
    needed = [run.all_passed for run in runs if run.all_passed is not None]
    if len(needed) < 2:
        return ""
    tenths = statistics.quantiles(needed, n=10)
    return f"half by {tenths[4]:.0f}, 90 % by {tenths[8]:.0f} target requests, of those that pass"


def _alarms(runs: Sequence[Run]) -> str:
    minutes = sorted(run.alarm_minute or 10**9 for run in runs)
    return f"median {minutes[len(minutes) // 2]} min"


_HARMLESS_RANDOM = (
    "harmless",
    "harmless, spells",
    "harmless, 10/min",
    "errors, spells",
    *(name for name in CELLS if name.startswith("errors") and " at " in name),
)
_PLAN_ENDS = 420  # minutes, when the last stage with a control has had its time

PROMISES: tuple[Promise, ...] = (
    Promise(
        "A harmless target fails any of the four metrics, whole rollout", ("harmless",), 0.05, lambda r: bool(r.failed)
    ),
    Promise("The same with failing and slow spells", ("harmless, spells",), 0.05, lambda r: bool(r.failed)),
    Promise(
        "A harmless target is rolled back, with and without spells",
        ("harmless", "harmless, spells"),
        0.05,
        lambda r: r.rolled_back,
    ),
    *(
        Promise(f"Harmless at {name}: error rate alone fails", (name,), 0.025, _failed(ERRORS), detail=_z_tests)
        for name in CELLS
        if name.startswith("errors") and " at " in name
    ),
    Promise(
        "Harmless at errors 2.0% at 60/min with spells: error rate alone fails",
        ("errors, spells",),
        0.025,
        _failed(ERRORS),
        detail=_z_tests,
    ),
    Promise("Latency p95 alone fails a harmless target", ("harmless",), 0.01, _failed(SLOW)),
    Promise("Latency average alone fails a harmless target", ("harmless",), 0.01, _failed(AVERAGE)),
    Promise("Cost alone fails a harmless target", ("harmless",), 0.01, _failed(COST)),
    Promise(
        "Errors 2 → 6 %: caught within 700 target requests",
        ("errors 2 to 6 %",),
        0.90,
        _within(ERRORS, 700),
        True,
        _requests(ERRORS),
    ),
    Promise(
        "Errors 2 → 4 %: caught within 2,000",
        ("errors 2 to 4 %",),
        0.90,
        _within(ERRORS, 2000),
        True,
        _requests(ERRORS),
    ),
    Promise(
        "Errors 2 → 50 %: caught within 20", ("errors 2 to 50 %",), 0.90, _within(ERRORS, 20), True, _requests(ERRORS)
    ),
    Promise(
        "Errors 2 → 100 %: caught within 5", ("errors 2 to 100 %",), 0.90, _within(ERRORS, 5), True, _requests(ERRORS)
    ),
    Promise(
        "Latency average +30 %: caught within 700",
        ("latency +30 %",),
        0.90,
        _within(AVERAGE, 700),
        True,
        _requests(AVERAGE),
    ),
    Promise(
        "Latency average doubled: caught within 100",
        ("latency doubled",),
        0.90,
        _within(AVERAGE, 100),
        True,
        _requests(AVERAGE),
    ),
    Promise("Latency p95 +50 %: caught within 600", ("p95 +50 %",), 0.90, _within(SLOW, 600), True, _requests(SLOW)),
    Promise("Passes although errors are at the margin, 2 → 4 %", ("margin of errors, 2 %",), 0.05, _passed(ERRORS)),
    Promise(
        "Passes although errors are at the margin, 0.5 → 1.5 %", ("margin of errors, 0.5 %",), 0.05, _passed(ERRORS)
    ),
    Promise(
        "Passes although latency p95 is at the margin of 1.25", ("margin of latency and cost",), 0.05, _passed(SLOW)
    ),
    Promise(
        "Passes although latency average is at the margin of 1.25",
        ("margin of latency and cost",),
        0.05,
        _passed(AVERAGE),
    ),
    Promise("Passes although cost is at the margin of 1.25", ("margin of latency and cost",), 0.05, _passed(COST)),
    Promise(
        "A harmless target passes everything inside the default plan, 60/min",
        ("harmless",),
        0.95,
        lambda run: run.all_passed_minute is not None and run.all_passed_minute <= _PLAN_ENDS,
        True,
        _passing,
    ),
    *(
        Promise(
            f"Sticky, harmless, {users} users, ICC {icc}: error rate fails",
            (f"sticky, {users} users, ICC {icc}",),
            0.05,
            _failed(ERRORS),
        )
        for users, icc in _STICKY
    ),
    Promise(
        "False alarm of the sample ratio, all harmless random runs",
        _HARMLESS_RANDOM,
        0.001,
        lambda run: run.alarm_minute is not None,
    ),
    Promise(
        "A fifth of the target's records lost, 60/min: alarm within 3 h",
        ("records lost",),
        0.5,
        lambda run: run.alarm_minute is not None and run.alarm_minute <= 180,
        True,
        _alarms,
    ),
    *(
        Promise(
            f"The interval of {metric.value} ever leaves the truth out",
            ("intervals",),
            0.05,
            _missed(metric),
        )
        for metric in Metric
    ),
)

REMARKS: tuple[Promise, ...] = (
    Promise(
        "Sticky without knowledge of the clustering, 300 users, ICC 0.2: error rate fails",
        ("sticky, clustering unknown",),
        1.0,
        _failed(ERRORS),
    ),
    Promise(
        "A harmless target at 10/min passes everything within a day, then it holds",
        ("harmless, 10/min",),
        1.0,
        lambda run: run.all_passed is not None,
    ),
)
"""Worth knowing, and no promise."""
