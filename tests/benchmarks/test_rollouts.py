"""A small simulation of rollouts: what the automatic verdict promises has to be compatible with what is counted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from benchmarks import rollouts
from benchmarks.binomial import limits
from benchmarks.rollout_picture import Curve, Panel, svg
from benchmarks.rollout_promises import CELLS, ERRORS, PROMISES, Cell, Outcome, Promise
from benchmarks.rollout_runs import Plan, Run, only, simulate
from benchmarks.rollout_traffic import World, traffic
from rollouts.evaluation import Metric

# The simulation is nothing but work, which a busy machine does slowly.
pytestmark = pytest.mark.timeout(900)

# Runs of each cell: enough to notice a verdict that is broken, few enough for every test run.
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
}
CHECKED = [promise for promise in PROMISES if set(promise.cells) <= set(FEW)]


@pytest.fixture(scope="module")
def results() -> dict[str, list[Run]]:
    return {name: rollouts.run_chunk(rollouts.Chunk(name, 0, count, seed=7))[1] for name, count in FEW.items()}


@pytest.mark.parametrize("promise", CHECKED, ids=lambda promise: promise.text)
def test_promise__seeded_runs__is_not_broken(promise: Promise, results: dict[str, list[Run]]) -> None:
    outcome = promise.outcome(results)

    assert not outcome.broken, f"{outcome.happened} of {outcome.runs}, limits {outcome.limits}"


def test_z_test__looked_at_each_minute__breaks_what_the_verdict_keeps(results: dict[str, list[Run]]) -> None:
    runs = results["errors, spells"]
    alarmed = sum(run.z_test_minute is not None for run in runs)

    assert limits(alarmed, len(runs))[0] > 0.3


def test_simulate__same_seed__is_the_same_run() -> None:
    world, plan = World(values=True, spells=True, target_errors=0.05), Plan(auto=True, minutes=60)

    assert simulate(world, plan, "one") == simulate(world, plan, "one")
    assert simulate(world, plan, "one") != simulate(world, plan, "two")


def test_simulate__automatic__rolls_back_a_bad_target_and_completes_a_harmless_one() -> None:
    policy = only(ERRORS)

    bad = simulate(World(target_errors=0.5), Plan(auto=True, policy=policy), "bad")
    good = simulate(World(errors=0.02), Plan(auto=True, policy=policy), "good")

    assert (bad.rolled_back, bad.completed) == (True, False)
    assert (good.rolled_back, good.completed) == (False, True)
    assert good.minutes >= 480


@pytest.mark.parametrize("world", [World(rate=300, errors=0.1), World(rate=300, users=500, icc=0.1, errors=0.1)])
def test_traffic__rates__are_those_of_the_world(world: World) -> None:
    source = traffic(world, Random(5))
    counts = [source.minute(number, 1, 25) for number in range(1, 1441)]
    target, baseline = (
        [(arm.requests, arm.errors) for arm in arms]
        for arms in ((one.target for one in counts), (one.baseline for one in counts))
    )
    requests = sum(n for n, _ in target + baseline)

    assert requests == pytest.approx(300 * 1440, rel=0.02)
    if not world.users:
        assert sum(n for n, _ in target) == pytest.approx(requests * 0.25, rel=0.02)
    assert sum(x for _, x in baseline) == pytest.approx(0.1 * sum(n for n, _ in baseline), rel=0.35)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Clopper and Pearson's limits from scipy.stats.binomtest(...).proportion_ci().
    [
        (0, 10, 0.0, 0.3084971),
        (3, 10, 0.0667395, 0.6524529),
        (10, 10, 0.6915029, 1.0),
        (25, 1000, 0.0162425, 0.0366848),
    ],
)
def test_limits__counts__are_exact(successes: int, trials: int, low: float, high: float) -> None:
    assert limits(successes, trials) == pytest.approx((low, high), abs=2e-6)


@pytest.mark.parametrize(
    ("happened", "runs", "at_least", "standing"),
    [
        (0, 1000, False, "kept"),
        (45, 1000, False, "kept, within chance"),
        (55, 1000, False, "missed, within chance"),
        (90, 1000, False, "**broken**"),
        (1000, 1000, True, "kept"),
        (0, 1000, True, "**broken**"),
    ],
)
def test_outcome__counts__say_how_sure_the_promise_is(happened: int, runs: int, at_least: bool, standing: str) -> None:
    promise = Promise("text", (), 0.05, bool, at_least)

    assert Outcome(promise, happened, runs, "").standing == standing


def test_svg__curves__are_drawn_and_texts_escaped() -> None:
    panel = Panel("a < b & c", "x", 100, 1.0, [Curve("one", [1, 50, 300, float("inf")], 4), Curve("none", [], 4)])
    logarithmic = dataclasses.replace(panel, logarithmic=True, line=0.5)

    root = ElementTree.fromstring(svg([panel, logarithmic]))  # noqa: S314 - our own

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("a < b & c") == 2
    assert "none" in texts


def test_main__write_docs__puts_table_and_picture_into_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {name: Cell(cell.world, dataclasses.replace(cell.plan, minutes=20), 2) for name, cell in CELLS.items()}
    monkeypatch.setattr(rollouts, "CELLS", short)
    monkeypatch.setattr(rollouts, "DOCS", tmp_path)

    rollouts.main(["--processes", "1", "--write-docs"])

    page = (tmp_path / "rollouts.md").read_text()
    assert all(promise.text in page for promise in PROMISES)
    assert page.count("| Promise |") == 1
    assert "A harmless target fails any" in capsys.readouterr().out
    ElementTree.fromstring((tmp_path / "rollouts.svg").read_text())  # noqa: S314 - our own


@pytest.mark.parametrize("arguments", [["--scale", "0"], ["--processes", "0"], ["--scale", "x"]])
def test_main__wrong_argument__is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        rollouts.main(arguments)

    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_only__policy__leaves_one_metric_to_decide() -> None:
    policy = only(Metric.COST)

    assert [policy.action(metric).value for metric in Metric] == ["ignore", "ignore", "ignore", "roll_back"]
