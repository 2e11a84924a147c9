from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.rollouts.runs import Plan, only
from benchmarks.rollouts.worlds import Budget, Fault, Questions, RateLimit, Sessions, Signals, Users, Weather, World
from rollouts.evaluation import Metric, Policy
from rollouts.evaluation.policy import LATENCY_MARGIN

UNANSWERED, ERRORS, SLOW, AVERAGE, COST = (
    Metric.UNANSWERED,
    Metric.ERROR_RATE,
    Metric.LATENCY_P95,
    Metric.LATENCY_AVERAGE,
    Metric.COST,
)

HARMLESS_RUNS = 2000
BROKEN_RUNS = 1000
_EXAMINED_RUNS = 500
"""The runs of worlds that an examination brought up."""
_HARM_RUNS = 400
_FEW_RUNS = 200
_DAY = 1440
_NINE_HOURS = 9 * 60
"""The length of a sticky rollout, and of others that mostly wait: the default plan and one hour more."""


@dataclass(frozen=True, slots=True)
class Cell:
    world: World
    plan: Plan
    runs: int


_STORM = Weather(spells=True, outages=True, bursts=True, drift=9)
_CACHED = Questions()
_AUTO = Plan(auto=True, peers=True)
_WATCH_ERRORS = Plan(until=ERRORS, policy=only(UNANSWERED, ERRORS), peers=True)
TRAFFIC: Mapping[float, tuple[int, ...]] = {
    0.005: (10, 60, 300),
    0.02: (3, 10, 60, 300, 5000),
    0.10: (10, 60, 300),
}
"""The requests a minute by error rate. Rollouts of days at few requests a minute, and those with hundreds of errors
a minute, are simulated at 2 % only, because at every rate they would cost as much as all the others together."""
STICKY = [(users, icc) for users in (300, 2000) for icc in (0.05, 0.2)]
BROKEN_USERS = ((300, 0.03), (1000, 0.01), (2000, 0.005), (100, 0.05), (30, 0.10))


def _watch(metric: Metric) -> Plan:
    return Plan(until=metric, policy=only(metric))


def _days(rate: float) -> int:
    return 7 * _DAY if rate < 3 else 3 * _DAY if rate < 10 else _DAY


def _harmless(world: World, minutes: int = _DAY) -> Cell:
    return Cell(world, replace(_AUTO, minutes=minutes), HARMLESS_RUNS)


def _sticky(world: World) -> Cell:
    return _harmless(world, _NINE_HOURS)


def _harmful(world: World, plan: Plan = _WATCH_ERRORS, runs: int = _HARM_RUNS) -> Cell:
    return Cell(world, plan, runs)


def errors_cell(rate: float, traffic: int) -> str:
    return f"errors {rate:.1%} at {traffic}/min"


def sticky_cell(users: int, icc: float) -> str:
    return f"sticky, {users} users, ICC {icc}"


def broken_way(share: str, way: str) -> str:
    return f"broken {share}: {way}"


def broken_cell(users: int, broken: float) -> str:
    return f"sticky, {users} users, {broken:.1%} always fail"


ERRORS_ONLY: Mapping[str, Cell] = {
    errors_cell(rate, traffic): Cell(
        World(errors=rate, rate=traffic), replace(_WATCH_ERRORS, minutes=_days(traffic)), HARMLESS_RUNS
    )
    for rate, rates in TRAFFIC.items()
    for traffic in rates
}

RANDOM: Mapping[str, Cell] = {
    "harmless": _harmless(World(values=True)),
    "harmless, spells": _harmless(World(values=True, weather=Weather(spells=True))),
    "harmless, 10/min": _harmless(World(values=True, rate=10)),
    "harmless, 3/min": _harmless(World(values=True, rate=3), _days(3)),
    "errors, spells": Cell(World(weather=Weather(spells=True)), _WATCH_ERRORS, HARMLESS_RUNS),
    "outages": _harmless(World(weather=Weather(outages=True))),
    "all at once": _harmless(World(values=True, weather=_STORM)),
    "Pareto latencies": _harmless(World(values=True, rate=30, tail=1.3)),
    "autocorrelated": _harmless(World(values=True, rate=30, weather=Weather(autocorrelation=0.98))),
    "retries": _harmless(World(retries=3)),
    "clients leave": _harmless(World(cancelled=0.10)),
    "cache, errors 4 %": _harmless(World(errors=0.04, questions=_CACHED)),
    "cache, errors 2 %": _harmless(World(questions=_CACHED)),
}
"""Harmless targets under random allocation."""

STICKY_CELLS: Mapping[str, Cell] = {
    **{sticky_cell(users, icc): _sticky(World(users=Users(users, icc=icc))) for users, icc in STICKY},
    **{
        broken_cell(users, broken): _sticky(World(errors=0.01, users=Users(users, broken=broken)))
        for users, broken in BROKEN_USERS
    },
    "sticky, 300 users, 3 % always fail, even activity": _sticky(
        World(errors=0.01, users=Users(300, broken=0.03, activity=math.inf))
    ),
    "sticky, 300 users, ICC 0.5": _sticky(World(users=Users(300, icc=0.5))),
    "sticky, 30 users, ICC 0.2, activity 1.05": _sticky(World(users=Users(30, icc=0.2, activity=1.05))),
    "sticky, 300 users, ICC 0.1, retries": _sticky(World(users=Users(300, icc=0.1), retries=3)),
    "sticky, 300 users, ICC 0.1, outages": _sticky(World(users=Users(300, icc=0.1), weather=Weather(outages=True))),
    **{
        f"sticky, {users} users, own latency and cost": _sticky(
            World(values=True, users=Users(users, icc=0.05, own=0.7))
        )
        for users in (300, 30)
    },
    **{
        f"sticky, {users} users, a heavy one's client breaks": _sticky(World(users=Users(users, heavy=(0.04, 0.08))))
        for users in (300, 2000)
    },
    "sticky, 300 users, 3 % always fail, cache": _sticky(
        World(errors=0.01, questions=_CACHED, users=Users(300, broken=0.03))
    ),
}
"""Harmless targets under sticky allocation, for nine hours: most of these rollouts wait at 50 % until the end."""

CACHES: Mapping[str, Cell] = {
    f"cache, {name}": Cell(World(values=True, questions=questions), Plan(auto=True), HARMLESS_RUNS)
    for name, questions in {
        "popular questions slow": Questions(slower=0.25),
        "popular questions a little slow": Questions(slower=0.1),
        "popular questions fail": Questions(failing=0.25),
        "questions alike": Questions(),
        "latency of its own for each question": Questions(spread=0.8),
        "popular questions fast": Questions(slower=-0.25),
    }.items()
}
"""Harmless targets beside a warm response cache, whose popular questions may differ from the others."""

HITS_ONLY: Mapping[str, Cell] = {
    f"{name}, hits left out only": Cell(replace(cell.world, compared_alike=False), cell.plan, _FEW_RUNS)
    for name, cell in CACHES.items()
}
"""The same, when a hit is left out and the same question of the other arm is not."""

_SESSIONS = Sessions(open=90, minutes=30)
_SESSION_BUDGET, _USER_BUDGET = Budget(24, 30 * _DAY), Budget(24, 60)
_SPENDERS = Users(300, icc=0.05, activity=3.0)
_BUDGETS: Mapping[str, World] = {
    "budgets of sessions": World(values=True, sessions=_SESSIONS, budget=_SESSION_BUDGET),
    "budgets of users, by the hour": World(values=True, users=_SPENDERS, budget=_USER_BUDGET),
    "budgets of users, by the day": World(values=True, users=_SPENDERS, budget=Budget(576, _DAY)),
    "budgets of keys": World(values=True, budget=Budget(6000, _DAY, keys=20)),
}
LIMITS: Mapping[str, Cell] = {
    **{name: Cell(world, Plan(auto=True, minutes=_NINE_HOURS), HARMLESS_RUNS) for name, world in _BUDGETS.items()},
    "requests per minute of users": Cell(
        World(users=Users(300, icc=0.05), rate_limit=RateLimit(2)),
        Plan(auto=True, minutes=_NINE_HOURS),
        HARMLESS_RUNS,
    ),
    "requests per minute of keys": Cell(World(rate_limit=RateLimit(5, keys=20)), Plan(auto=True), HARMLESS_RUNS),
}
"""Harmless targets where units run into their limits in both arms."""

_START_UP = World(values=True, start_up=3)
WARMING: Mapping[str, Cell] = {
    "start-up of three minutes": Cell(_START_UP, Plan(auto=True), HARMLESS_RUNS),
    **{
        f"prompt cache, {rate}/min": Cell(
            World(values=True, rate=rate, prompt_caches=1), Plan(auto=True, minutes=_days(rate)), HARMLESS_RUNS
        )
        for rate in (10, 30, 60)
    },
    **{
        f"prompt caches of {machines} machines, {rate}/min": Cell(
            World(values=True, rate=rate, prompt_caches=machines), Plan(auto=True), _EXAMINED_RUNS
        )
        for machines, rate in ((8, 20), (8, 60), (30, 200))
    },
}
"""Harmless targets that are slower or dearer until something has warmed up."""

_SIGNALS = Signals(contract=0.02, truncated=0.10, empty=0.01)
SIGNALS: Mapping[str, Cell] = {
    "signals of both arms": Cell(
        World(values=True, signals=_SIGNALS, weather=Weather(fallbacks=True)),
        Plan(auto=True, minutes=_NINE_HOURS),
        HARMLESS_RUNS,
    ),
    "signals of both arms, sticky, 300 users": Cell(
        World(signals=_SIGNALS, weather=Weather(fallbacks=True), users=Users(300, icc=0.05)),
        Plan(auto=True, minutes=_NINE_HOURS),
        HARMLESS_RUNS,
    ),
}
"""Harmless targets whose answers have the exact signals as often as the baseline's."""

FAULTY: Mapping[str, Cell] = {
    name: Cell(
        World(signals=_SIGNALS, target_signals=replace(_SIGNALS, **share)),
        Plan(auto=True, minutes=_NINE_HOURS),
        BROKEN_RUNS,
    )
    for name, share in {
        "every answer breaks its schema": {"contract": 1.0},
        "half of the answers break their schema": {"contract": 0.5},
        "every answer cut off": {"truncated": 1.0},
        "every answer empty": {"empty": 1.0},
        "every answer of the fallback": {"fallback": 1.0},
    }.items()
}
"""Targets that answer every request, and badly."""

_ALLOWED = Policy(cost_allowance=2.5)
DRAINED_SESSIONS = "budgets of sessions, target three times as dear"
DRAINED_USERS = "budgets of users, by the hour, target three times as dear"
_DRAINED: Mapping[str, Cell] = {
    name: Cell(
        replace(_BUDGETS[usual], cost_factor=3.0),
        Plan(auto=True, minutes=_NINE_HOURS, policy=_ALLOWED),
        BROKEN_RUNS,
    )
    for name, usual in (
        (DRAINED_SESSIONS, "budgets of sessions"),
        (DRAINED_USERS, "budgets of users, by the hour"),
    )
}

WORSE_PROVIDER: Mapping[str, Cell] = {
    f"provider worse than on the day before, {usual:.0%} to {now:.0%}": Cell(
        World(errors=now, usual_errors=usual), Plan(auto=True), _EXAMINED_RUNS
    )
    for usual, now in ((0.01, 0.03), (0.01, 0.05), (0.02, 0.06))
}
"""Harmless targets of a provider that became worse for everybody between the day before and the start."""

STICKY_DAY: Mapping[str, Cell] = {
    f"sticky, 300 users, ICC 0.05, a day{name}": Cell(world, Plan(auto=True), _EXAMINED_RUNS)
    for name, world in {
        "": World(users=Users(300, icc=0.05)),
        " with latency and cost": World(values=True, users=Users(300, icc=0.05)),
    }.items()
}
"""Harmless targets under sticky allocation that have the time to complete."""
STICKY_MARGIN = "sticky, 300 users, ICC 0.05, a day at the margin of errors"

SHARED_LIMIT = "tokens of the project, target of three times the tokens"
UNSETTLED = "start-up of three minutes, judged at once"

_HARM: Mapping[str, Cell] = {
    "errors 2 to 4 %": _harmful(World(target_errors=0.04)),
    "errors 2 to 6 %": _harmful(World(target_errors=0.06)),
    "errors 2 to 6 %, 3/min": _harmful(World(target_errors=0.06, rate=3), replace(_WATCH_ERRORS, minutes=_days(3))),
    "errors 2 to 6 %, 1/min": _harmful(World(target_errors=0.06, rate=1), replace(_WATCH_ERRORS, minutes=_days(1))),
    "errors 2 to 6 %, all at once": _harmful(World(target_errors=0.06, weather=_STORM)),
    "errors 2 to 6 %, sticky": _harmful(World(target_errors=0.06, users=Users(2000, icc=0.05)), _AUTO),
    "errors 2 to 6 %, sticky, 300 users": _harmful(World(target_errors=0.06, users=Users(300, icc=0.05)), _AUTO),
    "errors 0 to 1 %": _harmful(World(errors=0.0, target_errors=0.01)),
    "errors 5 to 20 %": _harmful(World(errors=0.05, target_errors=0.20)),
    "errors 2 to 12 %": _harmful(World(target_errors=0.12)),
    "errors 2 to 50 %": _harmful(World(target_errors=0.5)),
    "errors 2 to 100 %": _harmful(World(target_errors=1.0)),
    "errors 2 to 6 % from stage 4": _harmful(World(target_errors=0.06, harm_from=4)),
    "errors 2 to 6 % from stage 5": _harmful(World(target_errors=0.06, harm_from=5)),
    "latency +10 %": _harmful(World(values=True, latency_factor=1.1), _watch(AVERAGE)),
    "latency +30 %": _harmful(World(values=True, latency_factor=1.3), _watch(AVERAGE)),
    "latency doubled": _harmful(World(values=True, latency_factor=2.0), _watch(AVERAGE)),
    "p95 +50 %": _harmful(World(values=True, latency_factor=1.5), _watch(SLOW)),
    "p95 +50 %, prompt caches of 8 machines": _harmful(
        World(values=True, latency_factor=1.5, prompt_caches=8), _watch(SLOW), _EXAMINED_RUNS
    ),
    "cost +20 %": _harmful(World(values=True, cost_factor=1.2), Plan(auto=True)),
    "cost +50 %": _harmful(World(values=True, cost_factor=1.5), _watch(COST)),
    "cost doubled": _harmful(World(values=True, cost_factor=2.0), _watch(COST)),
}

SHARES = {"by half": 0.5, "wholly": 1.0}
WAYS: Mapping[str, World] = {
    "404": World(fault=Fault.NOT_FOUND),
    "422": World(fault=Fault.MISSING_VARIABLE),
    "hangs": World(fault=Fault.HANGING),
    "hangs, open requests not told": World(fault=Fault.HANGING, open_requests_reported=False),
    "clients leave": World(fault=Fault.LEFT),
    "output guardrail": World(fault=Fault.GUARDRAIL),
    "low quality": World(fault=Fault.LOW_QUALITY),
    "503": World(fault=Fault.FAILED),
    "404 behind a cold cache": World(fault=Fault.NOT_FOUND, questions=_CACHED),
    "404, 10/min": World(fault=Fault.NOT_FOUND, rate=10),
    "404, sticky, 300 users": World(fault=Fault.NOT_FOUND, users=Users(300, icc=0.1)),
}

BROKEN: Mapping[str, Cell] = {
    broken_way(name, way): Cell(replace(world, fault_share=share), Plan(auto=True), BROKEN_RUNS)
    for name, share in SHARES.items()
    for way, world in WAYS.items()
}

_OTHERS: Mapping[str, Cell] = {
    "margin of errors, 2 %": Cell(World(target_errors=0.04), Plan(policy=only(ERRORS)), 1000),
    "margin of errors, 0.5 %": Cell(World(errors=0.005, target_errors=0.015), Plan(policy=only(ERRORS)), 1000),
    # The cost is a quarter above what the rollout allows.
    "margin of latency and cost": Cell(
        World(values=True, latency_factor=LATENCY_MARGIN, cost_factor=Policy().cost_margin), Plan(), 500
    ),
    STICKY_MARGIN: Cell(World(users=Users(300, icc=0.05), target_errors=0.04), Plan(auto=True), _EXAMINED_RUNS),
    "sticky, clustering unknown": Cell(World(users=Users(300, icc=0.2, clusters_reported=False)), _WATCH_ERRORS, 200),
    "records lost": Cell(World(lost=0.2), Plan(), 300),
    "records lost, all of the target's at 50 %": Cell(World(lost=1.0, harm_from=5), Plan(), 300),
    "intervals": Cell(World(values=True, signals=_SIGNALS, cancelled=0.02), Plan(intervals=True), 300),
    SHARED_LIMIT: Cell(
        World(values=True, weather=Weather(steady=True), cost_factor=3.0, token_limit=2.0),
        Plan(auto=True, policy=_ALLOWED),
        _FEW_RUNS,
    ),
    UNSETTLED: Cell(_START_UP, Plan(auto=True, settles=False), _FEW_RUNS),
}

HARMLESS_OF_THE_LOG: Mapping[str, Cell] = {**CACHES, **LIMITS, **WARMING, **SIGNALS}
CELLS: Mapping[str, Cell] = {
    **ERRORS_ONLY,
    **RANDOM,
    **STICKY_CELLS,
    **STICKY_DAY,
    **WORSE_PROVIDER,
    **HARMLESS_OF_THE_LOG,
    **HITS_ONLY,
    **_HARM,
    **BROKEN,
    **FAULTY,
    **_DRAINED,
    **_OTHERS,
}
