from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.binomial import limits
from benchmarks.quality import __main__ as quality
from benchmarks.quality.lines import LINES, WORLDS, Line, Outcome
from benchmarks.quality.results import Chunk, ResultsFile
from benchmarks.quality.runs import Run, simulate
from benchmarks.quality.traffic import Traffic
from benchmarks.quality.worlds import MissingBy, World
from rollouts.evaluation.quality import Task
from tests.night import examples
from tests.tables.cases import tabled

# The simulation needs CPU time alone, which is slow on a busy machine.
pytestmark = pytest.mark.timeout(900)

FEW, MORE = 2, examples(10, 30)
QUICK = World(loss=0.5)


@pytest.fixture(scope="module")
def results() -> Mapping[World, Sequence[Run]]:
    return {
        world: quality.run_chunk(Chunk(world, 0, MORE if runs < max(WORLDS.values()) else FEW))
        for world, runs in WORLDS.items()
    }


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.number}: {line.text}")
def test_line__seeded_runs__is_not_broken(line: Line, results: Mapping[World, Sequence[Run]]) -> None:
    outcome = line.outcome(results)

    assert outcome is not None
    assert not outcome.broken, f"{outcome.count} of {outcome.runs}, limits {outcome.limits}"


def test_raw_judge_that_dislikes_the_target__rolls_back_what_labels_keep() -> None:
    biased = World(bias=0.1)
    raw, labelled = (
        [simulate(world, str(seed)) for seed in range(6)] for world in (biased, replace(biased, label_share=0.2))
    )

    assert limits(sum(run.rolled_back for run in raw), len(raw))[0] > 0.5
    assert not any(run.rolled_back for run in labelled)


def test_simulate__same_seed__is_the_same_run() -> None:
    assert simulate(QUICK, "one") == simulate(QUICK, "one") != simulate(QUICK, "two")


@pytest.mark.parametrize("by", MissingBy)
def test_missing_scores__any_kind__are_the_share_that_the_world_says(by: MissingBy) -> None:
    tasks = drawn(World(missing=0.4, missing_by=by, label_share=1.0))
    missing = [task for task in tasks if task.score is None]

    low, high = limits(len(missing), len(tasks), confidence=0.999)
    assert low < 0.4 < high
    # Nine of ten answers are good, and fewer of those without a score.
    good, good_missing = (sum(task.label or 0.0 for task in some) / len(some) for some in (tasks, missing))
    assert good_missing < good - 0.02
    assert good == pytest.approx(0.9, abs=0.02)


def test_hidden_scores__are_the_targets_bad_answers() -> None:
    world = World(loss=0.2, hidden=0.3, label_share=1.0)
    target, baseline = drawn(world, arm=0), drawn(world, arm=1)

    assert all(task.score is not None for task in baseline)
    assert {task.label for task in target if task.score is None} == {0.0}


def drawn(world: World, arm: int = 1) -> list[Task]:
    traffic = Traffic(world, random.Random("tasks"))
    found: list[Task] = []
    for number in range(1, 400):
        minute = traffic.minute(number, 1, ((-1,) * 10, (-1,) * 10))
        assert minute is not None
        tasks = minute.evaluators["one"]
        found.extend((tasks.target, tasks.baseline)[arm].tasks)
    return found


@tabled
def test_outcome__counts__say_how_sure_the_line_is(
    bound: float | None, at_least: bool, count: int, standing: str
) -> None:
    assert Outcome(Line("1", "text", (QUICK,), bool, bound, at_least), count, 1000, "").standing == standing


def test_main__results_file__goes_on_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "runs.jsonl"
    arguments = ["--processes", "1", "--only", "9", "--results", str(file)]
    quality.main([*arguments, "--runs", "2"])
    first = capsys.readouterr().out
    held = file.read_text()

    quality.main([*arguments, "--runs", "2", "--show"])

    assert capsys.readouterr().out.splitlines()[:8] == first.splitlines()[:8]
    assert file.read_text() == held
    [row] = [line for line in first.splitlines() if "50 points worse: found in 100 pairs" in line]
    assert row.startswith("| 9 | 50 points worse: found in 100 pairs | ≥ 90 % | ")
    assert row.split("|")[6].strip() == "2"


def test_results_file__of_other_code__is_not_used(tmp_path: Path) -> None:
    file, chunk = tmp_path / "runs.jsonl", Chunk(QUICK, 0, 1)
    ResultsFile(file, [QUICK]).add(chunk, [Run(pairs=3)])
    line = json.loads(file.read_text())

    assert ResultsFile(file, [QUICK]).get(chunk) == [Run(pairs=3)]
    assert ResultsFile(file, [QUICK]).get(replace(chunk, count=2)) is None
    file.write_text(json.dumps({**line, "digest": "other"}) + "\n")
    assert ResultsFile(file, [QUICK]).get(chunk) is None
