from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests import budgets
from tests.budgets import APPS, Used, count_lines, exceeded, known_seconds, taken_over, too_long, unit_of
from tests.tables.cases import tabled


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "budgets.toml"
    monkeypatch.setattr(budgets, "FILE", path)
    row = {"budget": 30, "cpu": 28, "wall": 40}
    budgets.write({"gateway": row, "small": {**row, "budget": 1}}, {"core": 1000}, {"tests/a.py": 9.4}, 0.02)
    return path


def used(pace: float = 0.02, **units: float) -> Used:
    return Used(defaultdict(float, units), defaultdict(float, dict.fromkeys(units, 1.0)), pace=pace)


def test_lines__of_every_app__are_within_the_budget() -> None:
    assert too_long(count_lines()) == []


def test_count_lines__of_the_apps__are_those_that_git_tracks() -> None:
    counted = count_lines(APPS)

    assert set(counted) == set(APPS) and all(count > 1000 for count in counted.values())


def test_too_long__app_above_its_budget__says_what_to_do(file: Path) -> None:
    (said,) = too_long({"core": 1001})

    assert "core has 1001 lines" in said and "budget is 1000" in said and "tests/budgets.toml" in said


def test_too_long__budget_that_is_too_wide__says_so(file: Path) -> None:
    assert too_long({"core": 950}) == []
    (said,) = too_long({"core": 900})

    assert "make budgets" in said


@pytest.mark.parametrize(("seconds", "is_wrong"), [(30.0, False), (39.9, False), (40.5, True)])
def test_exceeded__more_than_a_third_above__says_what_to_do(file: Path, seconds: float, is_wrong: bool) -> None:
    said = exceeded(used(gateway=seconds))

    assert bool(said) is is_wrong
    assert all("gateway took" in line and "tests/budgets.toml" in line for line in said)


def test_exceeded__all_units_dearer_alike__is_a_busy_machine_up_to_half_more(file: Path) -> None:
    units = ("gateway", "console", "agent")
    row = {"budget": 30, "cpu": 28, "wall": 40}
    budgets.write(dict.fromkeys(units, row), {}, {}, 0.02)

    assert exceeded(used(gateway=40.0, console=44.0, agent=50.0)) == []
    (said,) = exceeded(used(gateway=40.0, console=44.0, agent=60.0))
    assert "agent took" in said
    assert len(exceeded(used(gateway=61.0, console=61.0, agent=61.0))) == 3


def test_exceeded__all_units_dearer_on_a_slower_machine__is_up_to_half_above_its_pace(file: Path) -> None:
    row = {"budget": 30, "cpu": 28, "wall": 40}
    budgets.write(dict.fromkeys(("gateway", "console", "agent"), row), {}, {}, 0.02)

    assert exceeded(used(pace=0.04, gateway=61.0, console=61.0, agent=61.0)) == []
    assert exceeded(used(pace=0.01, gateway=59.0, console=59.0, agent=59.0)) == []
    assert len(exceeded(used(pace=0.04, gateway=121.0, console=121.0, agent=121.0))) == 3


def test_exceeded__new_unit__has_no_budget_yet(file: Path) -> None:
    assert exceeded(used(new=50.0)) and not exceeded(used(new=5.0))
    assert not exceeded(used(checks=100.0))


def test_exceeded__small_unit__may_vary_by_some_seconds(file: Path) -> None:
    assert exceeded(used(small=6.5)) == [] and exceeded(used(small=7.5))


def test_taken_over__after_a_run__lowers_budgets_and_never_raises_them(file: Path) -> None:
    rows = taken_over(used(gateway=10.0, small=3.0, new=20.0))

    assert {unit: row["budget"] for unit, row in rows.items()} == {"gateway": 11, "small": 1, "new": 22}


def test_used__written_and_read__is_the_same(tmp_path: Path) -> None:
    measured = Used()
    measured.add("gateway", "tests/gateway/test_a.py", 2.0, 3.0)
    measured.add("gateway", "tests/gateway/test_b.py", 1.0, 1.5)
    measured.write(str(tmp_path / "used.json"))

    found = Used.read(str(tmp_path / "used.json"))

    assert (found.cpu, found.wall) == ({"gateway": 3.0}, {"gateway": 4.5})
    assert found.modules["tests/gateway/test_b.py"] == (1.0, 1.5)
    assert "gateway" in found.table()


def test_write__then_read__gives_the_long_modules_back(file: Path) -> None:
    assert known_seconds() == {"tests/a.py": 9}


@tabled
def test_unit_of__module__is_its_folder_or_a_part_of_a_large_one(module: str, unit: str) -> None:
    assert unit_of(module) == unit
