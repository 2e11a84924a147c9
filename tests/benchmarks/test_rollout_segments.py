from __future__ import annotations

import pytest

from benchmarks.binomial import limits
from benchmarks.rollouts.segments import ACCEPTED, WORLDS, Result, row, simulate

RUNS = 3


@pytest.fixture(scope="module")
def results() -> dict[str, list[Result]]:
    return {name: [simulate(world, (7, number)) for number in range(RUNS)] for name, world in WORLDS.items()}


@pytest.mark.parametrize("name", WORLDS)
def test_world__seeded_runs__does_not_break_what_is_accepted(name: str, results: dict[str, list[Result]]) -> None:
    broken = sum(one.breaks(WORLDS[name]) for one in results[name])

    assert limits(broken, RUNS)[0] <= ACCEPTED[name][1]
    assert row(name, results[name]).startswith(f"| {name} |")


def test_segment__that_fails__is_named_in_some_run(results: dict[str, list[Result]]) -> None:
    for name, world in WORLDS.items():
        named = [one.first_named(world) for one in results[name]]
        assert any(named) == (world.segment is not None)


def test_world__same_seed__gives_the_same_run() -> None:
    world = WORLDS["fails for a language"]

    assert simulate(world, (3, 1)) == simulate(world, (3, 1)) != simulate(world, (3, 2))
