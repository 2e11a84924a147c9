from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.rollouts import __main__ as rollouts
from benchmarks.rollouts.cells import CELLS, ERRORS
from benchmarks.rollouts.digest import digest, without_words
from benchmarks.rollouts.results import Chunk, ResultsFile
from benchmarks.rollouts.runs import Plan
from benchmarks.rollouts.worlds import Users, World

CELL = "errors 2 to 100 %"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def run(results: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    rollouts.main(["--processes", "1", "--only", CELL, "--results", str(results), *arguments])
    lines = capsys.readouterr().out.splitlines()
    return "\n".join(lines[:-2]), lines[-1]


def chunks(results: Path) -> list[tuple[int, int]]:
    return [(line["first"], len(line["runs"])) for line in map(json.loads, results.read_text().splitlines())]


def test_results__run_again__simulates_nothing(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = run(results, capsys, "--scale", "0.05")
    monkeypatch.delattr(rollouts, "simulate")

    again, _ = run(results, capsys, "--scale", "0.05")

    assert "caught within 5" in table
    assert again == table
    assert chunks(results) == [(0, 10), (10, 10)]


def test_results__larger_scale__adds_what_is_missing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(results, capsys, "--scale", "0.03")
    table, _ = run(results, capsys, "--scale", "0.1")
    whole, _ = run(results.with_name("other.jsonl"), capsys, "--scale", "0.1")

    # The second chunk had two runs, and is drawn anew with all ten.
    assert chunks(results) == [(0, 10), (10, 2), (10, 10), (20, 10), (30, 10)]
    assert table == whole


def test_results__killed_while_it_wrote__forgets_the_last_line(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, _ = run(results, capsys, "--scale", "0.05")
    results.write_text(results.read_text()[:-40])

    again, _ = run(results, capsys, "--scale", "0.05")

    assert again == table
    assert chunks(results) == [(0, 10), (10, 10)]


@pytest.mark.parametrize("field", ["formula", "digest"])
def test_results__of_another_source__are_not_used(results: Path, field: str) -> None:
    chunk = Chunk(CELL, 0, 2, seed=1)
    ResultsFile(results, CELLS).add(rollouts.run_chunk(chunk))
    line = json.loads(results.read_text())

    kept = ResultsFile(results, CELLS).get(chunk)
    results.write_text(f"{json.dumps({**line, field: 0})}\n")

    assert kept is not None
    assert kept.runs == rollouts.run_chunk(chunk).runs
    assert ResultsFile(results, CELLS).get(chunk) is None


def test_digest__world_or_plan__changes_it() -> None:
    world, plan = World(users=Users(30)), Plan(until=ERRORS)
    others = [
        (replace(world, rate=3), plan),
        (replace(world, users=Users(30, icc=0.1)), plan),
        (world, replace(plan, auto=True)),
        (world, replace(plan, policy=replace(plan.policy, cost_allowance=2.0))),
    ]

    assert digest(world, plan) == digest(World(users=Users(30)), Plan(until=ERRORS))
    assert len({digest(world, plan), *(digest(*one) for one in others)}) == 5


def test_digest__words_and_layout__do_not_matter() -> None:
    one = (
        'def add(a):\n    """Adds one."""\n    if not a:\n        raise ValueError("nothing to add")\n    return a + 1'
    )
    same = 'def add(a):\n    # A comment.\n    if not a: raise ValueError("nothing to add to")\n    return (a + 1)'
    other = same.replace("+ 1", "+ 2")

    trees = [ast.dump(without_words(ast.parse(text))) for text in (one, same, other)]

    assert trees[0] == trees[1] != trees[2]
