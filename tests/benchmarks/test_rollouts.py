from __future__ import annotations

import pytest

from benchmarks.binomial import limits
from benchmarks.rollouts import __main__ as rollouts
from benchmarks.rollouts.cells import ERRORS
from benchmarks.rollouts.comparison import power
from benchmarks.rollouts.outcomes import Mean, Outcome, Promise
from benchmarks.rollouts.peers import Z_TEST
from benchmarks.rollouts.promises import PROMISES
from benchmarks.rollouts.results import Chunk
from benchmarks.rollouts.runs import Plan, Run, only, simulate
from benchmarks.rollouts.worlds import Weather, World
from rollouts.evaluation import Metric
from tests.night import cases
from tests.tables.cases import tabled

# The simulation needs CPU time alone, which is slow on a busy machine.
pytestmark = pytest.mark.timeout(900)

# The number of runs of each cell is large enough to show a broken verdict, and small enough for every test run.
FEW = {
    "harmless": 6,
    "harmless, spells": 6,
    "errors 2.0% at 60/min": 24,
    "errors 10.0% at 10/min": 8,
    "errors, spells": 20,
    "errors 2 to 6 %": 80,
    "errors 2 to 50 %": 80,
    "errors 2 to 100 %": 80,
    "latency +30 %": 20,
    "latency doubled": 20,
    "p95 +50 %": 20,
    "margin of errors, 2 %": 20,
    "margin of latency and cost": 5,
    "sticky, 300 users, ICC 0.2": 10,
    "outages": 10,
    "provider worse than on the day before, 1% to 3%": 10,
    "prompt caches of 8 machines, 20/min": 10,
    "sticky, 300 users, ICC 0.05, a day": 20,
    "sticky, 300 users, ICC 0.05, a day at the margin of errors": 10,
    "cache, errors 4 %": 20,
    "records lost, all of the target's at 50 %": 10,
}
CELLS_TRIED = cases(
    list(FEW),
    by_day=[
        "harmless",
        "errors 10.0% at 10/min",
        "errors, spells",
        "errors 2 to 50 %",
        "errors 2 to 100 %",
        "latency doubled",
        "outages",
        "records lost, all of the target's at 50 %",
    ],
)
CHECKED = [promise for promise in PROMISES if set(promise.cells) <= set(CELLS_TRIED)]


@pytest.fixture(scope="module")
def results() -> dict[str, list[Run]]:
    return {name: rollouts.run_chunk(Chunk(name, 0, FEW[name], seed=7)).runs for name in CELLS_TRIED}


@pytest.mark.parametrize("promise", CHECKED, ids=lambda promise: promise.text)
def test_promise__seeded_runs__is_not_broken(promise: Promise, results: dict[str, list[Run]]) -> None:
    outcome = promise.outcome(results)

    assert not outcome.broken, f"{outcome.happened} of {outcome.runs}, limits {outcome.limits}"


def test_z_test__looked_at_each_minute__breaks_what_the_verdict_keeps(results: dict[str, list[Run]]) -> None:
    runs = results["errors, spells"]
    alarmed = sum(Z_TEST in run.alarms for run in runs)

    assert limits(alarmed, len(runs))[0] > 0.3


def test_simulate__same_seed__is_the_same_run() -> None:
    world, plan = World(values=True, weather=Weather(spells=True), target_errors=0.05), Plan(auto=True, minutes=60)

    assert simulate(world, plan, "one") == simulate(world, plan, "one")
    assert simulate(world, plan, "one") != simulate(world, plan, "two")


def test_simulate__automatic__rolls_back_a_bad_target_and_completes_a_harmless_one() -> None:
    policy = only(ERRORS)

    bad = simulate(World(target_errors=0.5), Plan(auto=True, policy=policy), "bad")
    good = simulate(World(errors=0.02), Plan(auto=True, policy=policy), "good")

    assert (bad.rolled_back, bad.completed) == (True, False)
    assert (good.rolled_back, good.completed) == (False, True)
    assert good.minutes >= 480


def test_simulate__verdict_that_ended_early__lets_the_usual_tests_see_the_whole_plan() -> None:
    world, plan = World(target_errors=0.5), Plan(until=ERRORS, policy=only(ERRORS), peers=True)

    run = simulate(world, plan, "bad")

    assert run.minutes < 60
    # The group-sequential plan tests at the ends of stages only, so it alarms after the verdict has ended.
    assert run.minutes < run.alarms["group-sequential"][0]


def test_power__alarm_before_the_harm__is_not_caught() -> None:
    runs = [
        Run(alarms={"verdict": (9, 120)}, harmed_after=100),
        Run(alarms={"verdict": (9, 90)}, harmed_after=100),
        Run(alarms={}, harmed_after=100),
        Run(alarms={"verdict": (9, 150)}, harmed_after=100),
    ]

    found = power(runs, "verdict")

    assert (found.caught, found.median) == (0.5, 50)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # The limits of Clopper and Pearson come from scipy.stats.binomtest(...).proportion_ci().
    [
        (0, 10, 0.0, 0.3084971),
        (3, 10, 0.0667395, 0.6524529),
        (10, 10, 0.6915029, 1.0),
        (25, 1000, 0.0162425, 0.0366848),
    ],
)
def test_limits__counts__are_exact(successes: int, trials: int, low: float, high: float) -> None:
    assert limits(successes, trials) == pytest.approx((low, high), abs=2e-6)


@tabled
def test_outcome__counts__say_how_sure_the_promise_is(
    bound: float, happened: int, at_least: bool, standing: str
) -> None:
    promise = Promise("text", (), bound, bool, at_least)

    assert Outcome(promise, happened, 1000, "").standing == standing


def test_mean__values_of_runs__has_the_limits_of_a_normal_mean() -> None:
    runs = [Run(minutes=100, worse_for_all=held) for held in (0, 0, 0, 20)]
    mean = Mean("text", ("cell",), 0.05, value=lambda run: run.worse_for_all / run.minutes)

    outcome = mean.outcome({"cell": runs})

    assert (outcome.runs, outcome.share) == (4, 0.05)
    assert outcome.limits == pytest.approx((0.0, 0.05 + 1.96 * 0.1 / 2))
    assert outcome.standing == "kept, within chance"


def test_only__policy__leaves_these_metrics_to_decide() -> None:
    policy = only(Metric.COST, Metric.LATENCY_P95)

    assert {metric for metric in Metric if policy.action(metric).value == "roll_back"} == {
        Metric.COST,
        Metric.LATENCY_P95,
    }
