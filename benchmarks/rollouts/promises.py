from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from benchmarks.rollouts.cells import (
    AVERAGE,
    COST,
    DRAINED_SESSIONS,
    DRAINED_USERS,
    ERRORS,
    ERRORS_ONLY,
    FAULTY,
    HARMLESS_OF_THE_LOG,
    HITS_ONLY,
    RANDOM,
    SHARED_LIMIT,
    SHARES,
    SLOW,
    STICKY,
    STICKY_CELLS,
    STICKY_DAY,
    STICKY_MARGIN,
    UNSETTLED,
    WAYS,
    WORSE_PROVIDER,
    broken_way,
    sticky_cell,
)
from benchmarks.rollouts.outcomes import Mean, Promise
from benchmarks.rollouts.peers import Z_TEST
from benchmarks.rollouts.runs import Run
from rollouts.evaluation import Metric
from rollouts.evaluation.policy import ALPHA, EXACT

_NEVER = math.inf
_DAY = 1440
_SIGNALS = "signals of both arms"
_PLAN_ENDS = 420  # The minutes after which the last stage with a control has met its minimum.


def _any_failed(run: Run) -> bool:
    return bool(run.failed)


def _rolled_back(run: Run) -> bool:
    return run.rolled_back


def _failed(metric: Metric) -> Callable[[Run], bool]:
    return lambda run: metric in run.failed


def _needed(run: Run, metric: Metric) -> float:
    """Returns the target's requests from the beginning of the harm until the metric failed. An earlier failure does not
    count."""
    failed, before = run.failed.get(metric, _NEVER), run.harmed_after
    return _NEVER if before is None or failed < before else failed - before


def _within(metric: Metric, requests: int) -> Callable[[Run], bool]:
    return lambda run: _needed(run, metric) <= requests


def _any_within(requests: int) -> Callable[[Run], bool]:
    return lambda run: min((_needed(run, metric) for metric in run.failed), default=_NEVER) <= requests


def _passed(metric: Metric) -> Callable[[Run], bool]:
    return lambda run: metric in run.passed


def _missed(metric: Metric) -> Callable[[Run], bool]:
    return lambda run: metric in run.missed


def _requests(metric: Metric) -> Callable[[Sequence[Run]], str]:
    def describe(runs: Sequence[Run]) -> str:
        needed = sorted(_needed(run, metric) for run in runs)
        half, nine_tenths = (needed[math.ceil(share * len(needed)) - 1] for share in (0.5, 0.9))
        shown = [
            f"{name} by {number:.0f}" for name, number in (("half", half), ("90 %", nine_tenths)) if number < _NEVER
        ]
        return f"{', '.join(shown)} target requests" if shown else "less than half at all"

    return describe


def _z_tests(runs: Sequence[Run]) -> str:
    return f"a z-test each minute: {sum(Z_TEST in run.alarms for run in runs) / len(runs):.1%}"


def _ended(runs: Sequence[Run]) -> str:
    back = f"rolled back {sum(run.rolled_back for run in runs) / len(runs):.1%}"
    minutes = sorted(run.minutes for run in runs if run.completed)
    return f"{back}; half of those that complete by minute {minutes[len(minutes) // 2]}" if minutes else back


def _failing(runs: Sequence[Run]) -> str:
    shares = {metric: sum(metric in run.failed for run in runs) / len(runs) for metric in Metric}
    return ", ".join(f"{metric.value} {share:.1%}" for metric, share in shares.items() if share)


def _completed(runs: Sequence[Run]) -> str:
    done = f"completed {sum(run.completed for run in runs) / len(runs):.0%}"
    return f"{done}; {failing}" if (failing := _failing(runs)) else done


def _passing(runs: Sequence[Run]) -> str:
    needed = [run.all_passed for run in runs if run.all_passed is not None]
    if len(needed) < 2:
        return ""
    tenths = statistics.quantiles(needed, n=10)
    return f"half by {tenths[4]:.0f}, 90 % by {tenths[8]:.0f} target requests, of those that pass"


def _lost_for(run: Run) -> float:
    found, began = run.sample_ratio_minute, run.harmed_minute
    return _NEVER if found is None or began is None or found < began else found - began + 1


def _losses(runs: Sequence[Run]) -> str:
    minutes = sorted(map(_lost_for, runs))
    return f"median {minutes[len(minutes) // 2]:.0f} min"


def _rollbacks(runs: Sequence[Run]) -> str:
    minutes = sorted(run.minutes for run in runs if run.rolled_back)
    share = f"rolled back {len(minutes) / len(runs):.0%}"
    highest = f"highest weight {max(run.weight for run in runs)} %"
    return f"{share}, half of them by minute {minutes[len(minutes) // 2]}; {highest}" if minutes else highest


def _promoted(run: Run) -> bool:
    return run.completed or run.weight >= 50


def _done(run: Run) -> bool:
    return run.completed


def _held_for_all(run: Run) -> float:
    return run.worse_for_all / run.minutes


def _was_held_for_all(run: Run) -> bool:
    return run.worse_for_all > 0


def _holds(runs: Sequence[Run]) -> str:
    shares = [
        f"{text} {share:.1%}"
        for text, happened in (("50 % reached by", _promoted), ("held as worse for all", _was_held_for_all))
        if (share := sum(map(happened, runs)) / len(runs))
    ]
    return "; ".join((_rollbacks(runs), *shares))


_ERRORS_ONLY = tuple(ERRORS_ONLY)
_HARMLESS_RANDOM = (
    *RANDOM,
    *_ERRORS_ONLY,
    *(name for name, cell in HARMLESS_OF_THE_LOG.items() if not cell.world.is_sticky),
)


def _caught(text: str, cell: str, metric: Metric, requests: int) -> Promise:
    return Promise(text, (cell,), 0.90, _within(metric, requests), True, _requests(metric))


def _completes(name: str, share: float) -> Promise:
    text = f"{name[0].upper()}{name[1:]}, harmless: completes within a day"
    return Promise(text, (name,), share, _done, True, _ended)


def _rolls_back(text: str, cell: str) -> Promise:
    return Promise(text, (cell,), 0.05, _rolled_back, detail=_completed)


_HARMLESS: tuple[Promise, ...] = (
    Promise("A harmless target fails any metric, whole rollout", ("harmless",), 0.05, _any_failed),
    Promise("The same with failing and slow spells", ("harmless, spells",), 0.05, _any_failed),
    Promise(
        "A harmless target is rolled back, with and without spells",
        ("harmless", "harmless, spells"),
        0.05,
        _rolled_back,
        detail=_completed,
    ),
    *(
        Promise(f"Harmless at {name}: error rate alone fails", (name,), ALPHA[ERRORS], _failed(ERRORS), detail=_z_tests)
        for name in _ERRORS_ONLY
    ),
    Promise("Harmless, errors only, all of these: rolled back", _ERRORS_ONLY, 0.05, _any_failed),
    Promise(
        "Harmless at errors 2.0% at 60/min with spells: error rate alone fails",
        ("errors, spells",),
        ALPHA[ERRORS],
        _failed(ERRORS),
        detail=_z_tests,
    ),
    Promise("Latency p95 alone fails a harmless target", ("harmless",), ALPHA[SLOW], _failed(SLOW)),
    Promise("Latency average alone fails a harmless target", ("harmless",), ALPHA[AVERAGE], _failed(AVERAGE)),
    Promise("Cost alone fails a harmless target", ("harmless",), ALPHA[COST], _failed(COST)),
    *(
        Promise(f"{metric.value.title()} alone fails a harmless target", (_SIGNALS,), ALPHA[metric], _failed(metric))
        for metric in EXACT
    ),
    _rolls_back("Harmless, all metrics, 10/min: rolled back", "harmless, 10/min"),
    _rolls_back("Harmless, all metrics, 3/min: rolled back", "harmless, 3/min"),
    _rolls_back("Harmless, outages of both arms: rolled back", "outages"),
    _rolls_back("Harmless, drift, spells, outages and bursts at once, all metrics: rolled back", "all at once"),
    _rolls_back("Harmless, Pareto latencies of tail 1.3, 30/min: rolled back", "Pareto latencies"),
    _rolls_back("Harmless, latency and errors autocorrelated (0.98 a minute), 30/min: rolled back", "autocorrelated"),
    _rolls_back("Harmless, failures tried again up to three times: rolled back", "retries"),
    _rolls_back("Harmless, a tenth of both arms' requests left by clients: rolled back", "clients leave"),
    _rolls_back("Harmless beside a warm response cache, 4 % of uncached calls fail: rolled back", "cache, errors 4 %"),
    _rolls_back("Harmless beside a warm response cache, 2 % of uncached calls fail: rolled back", "cache, errors 2 %"),
    *(_rolls_back(f"Harmless, {name}: rolled back", name) for name in HARMLESS_OF_THE_LOG),
    *(_completes(name, 0.90) for name in WORSE_PROVIDER),
    *(_rolls_back(f"{name[0].upper()}{name[1:]}, harmless: rolled back", name) for name in WORSE_PROVIDER),
    Mean(
        "Harmless, outages of both arms: minutes in which it is held because both do worse than the day before",
        ("outages",),
        0.05,
        value=_held_for_all,
    ),
)

_STICKY: tuple[Promise, ...] = (
    *(
        Promise(
            f"Sticky, harmless, {users} users, ICC {icc}: error rate fails",
            (sticky_cell(users, icc),),
            0.05,
            _failed(ERRORS),
            detail=_completed,
        )
        for users, icc in STICKY
    ),
    *(
        _rolls_back(f"{name[0].upper()}{name[1:]}, harmless: rolled back", name)
        for name in STICKY_CELLS
        if name not in {sticky_cell(users, icc) for users, icc in STICKY}
    ),
    *(_completes(name, 0.60) for name in STICKY_DAY),
    *(_rolls_back(f"{name[0].upper()}{name[1:]}, harmless: rolled back", name) for name in STICKY_DAY),
    Promise(
        "Sticky, 300 users, ICC 0.05: passes within a day although errors are at the margin, 2 → 4 %",
        (STICKY_MARGIN,),
        0.05,
        _passed(ERRORS),
        detail=_ended,
    ),
)

_HARMFUL: tuple[Promise, ...] = (
    _caught("Errors 2 → 6 %: caught within 700 target requests", "errors 2 to 6 %", ERRORS, 700),
    _caught("Errors 2 → 4 %: caught within 2,000", "errors 2 to 4 %", ERRORS, 2000),
    _caught("Errors 2 → 50 %: caught within 20", "errors 2 to 50 %", ERRORS, 20),
    _caught("Errors 2 → 100 %: caught within 5", "errors 2 to 100 %", ERRORS, 5),
    *(
        Promise(f"{text}: half caught within {requests}", (cell,), 0.5, _any_within(requests), True)
        for text, cell, requests in (
            ("Errors 2 → 100 %", "errors 2 to 100 %", 5),
            ("Errors 2 → 50 %", "errors 2 to 50 %", 10),
            ("Errors 2 → 12 %", "errors 2 to 12 %", 60),
            ("Errors 2 → 6 %", "errors 2 to 6 %", 250),
        )
    ),
    _caught("Latency average +30 %: caught within 700", "latency +30 %", AVERAGE, 700),
    _caught("Latency average doubled: caught within 100", "latency doubled", AVERAGE, 100),
    _caught("Latency p95 +50 %: caught within 700", "p95 +50 %", SLOW, 700),
    _caught(
        "Latency p95 +50 % beside prompt caches of 8 machines: caught within 700",
        "p95 +50 %, prompt caches of 8 machines",
        SLOW,
        700,
    ),
    _caught("Errors 2 → 6 % at 3/min: caught within 700", "errors 2 to 6 %, 3/min", ERRORS, 700),
    Promise(
        "Errors 2 → 6 % from the stage of 50 % on: caught within 700 of its beginning",
        ("errors 2 to 6 % from stage 5",),
        0.50,
        _within(ERRORS, 700),
        True,
        _requests(ERRORS),
    ),
    *(
        Promise(
            f"Broken {share}, {way}: reaches 50 % or completes",
            (broken_way(share, way),),
            0.0,
            _promoted,
            detail=_rollbacks,
        )
        for share in SHARES
        for way in WAYS
    ),
    *(
        Promise(f"{name[0].upper()}{name[1:]}: reaches 50 % or completes", (name,), 0.0, _promoted, detail=_holds)
        for name in (*FAULTY, DRAINED_SESSIONS)
    ),
    Promise(f"{DRAINED_USERS[0].upper()}{DRAINED_USERS[1:]}: completes", (DRAINED_USERS,), 0.0, _done, detail=_holds),
    _caught("Every answer breaks its schema: caught within 20", "every answer breaks its schema", Metric.CONTRACT, 20),
    Promise(f"{SHARED_LIMIT[0].upper()}{SHARED_LIMIT[1:]}: completes", (SHARED_LIMIT,), 0.0, _done, detail=_holds),
    Promise(
        "Cost +20 % with an allowance of 25 %, 60/min: completes within a day",
        ("cost +20 %",),
        0.90,
        lambda run: run.completed and run.minutes <= _DAY,
        True,
    ),
)

_PASSES: tuple[Promise, ...] = (
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
)

_RECORDS: tuple[Promise, ...] = (
    Promise(
        "False alarm of the sample ratio, all harmless random runs",
        _HARMLESS_RANDOM,
        0.001,
        lambda run: run.sample_ratio_minute is not None,
    ),
    Promise(
        "A fifth of the target's records lost, 60/min: alarm within 3 h",
        ("records lost",),
        0.5,
        lambda run: _lost_for(run) <= 180,
        True,
        _losses,
    ),
    Promise(
        "All of the target's records lost at 50 %, 60/min: alarm within 10 min",
        ("records lost, all of the target's at 50 %",),
        0.95,
        lambda run: _lost_for(run) <= 10,
        True,
        _losses,
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

PROMISES: tuple[Promise, ...] = (*_HARMLESS, *_HARMFUL, *_PASSES, *_STICKY, *_RECORDS)


def _remark(text: str, cell: str, happened: Callable[[Run], bool], metric: Metric | None = None) -> Promise:
    return Promise(text, (cell,), 1.0, happened, detail=_requests(metric) if metric else lambda runs: "")


REMARKS: tuple[Promise, ...] = (
    _remark(
        "Sticky without knowledge of the clustering, 300 users, ICC 0.2: error rate fails",
        "sticky, clustering unknown",
        _failed(ERRORS),
    ),
    _remark(
        "A harmless target at 10/min passes everything within a day, then it holds",
        "harmless, 10/min",
        lambda run: run.all_passed is not None,
    ),
    *(
        _remark(f"{text}, caught", cell, _failed(metric), metric)
        for text, cell, metric in (
            ("Errors 0 → 1 %", "errors 0 to 1 %", ERRORS),
            ("Errors 5 → 20 %", "errors 5 to 20 %", ERRORS),
            ("Errors 2 → 6 % at 1/min", "errors 2 to 6 %, 1/min", ERRORS),
            ("Errors 2 → 6 % from the stage of 25 % on", "errors 2 to 6 % from stage 4", ERRORS),
            ("Latency average +10 %, within a day", "latency +10 %", AVERAGE),
            ("Cost +50 %", "cost +50 %", COST),
            ("Cost doubled", "cost doubled", COST),
            ("Half of the answers break their schema", "half of the answers break their schema", Metric.CONTRACT),
        )
    ),
    *(_remark(f"Harmless, {name}: rolled back", name, _rolled_back) for name in (*HITS_ONLY, UNSETTLED)),
    *(
        _remark(f"Errors 2 → 6 %, sticky, {users} users, ICC 0.05, rolled back within a day", cell, _rolled_back)
        for users, cell in ((2000, "errors 2 to 6 %, sticky"), (300, "errors 2 to 6 %, sticky, 300 users"))
    ),
)
"""Results that are worth knowing and are not promised."""
