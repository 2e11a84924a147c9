"""The units in which `make test` runs the suite."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.run import ROOT, Unit, units


def files_of(root: Path, unit: Unit) -> list[Path]:
    """As pytest collects them."""
    found = [file for path in unit.paths for file in [root / path, *(root / path).rglob("test_*.py")] if file.is_file()]
    return [file for file in found if not any(file.is_relative_to(root / path) for path in unit.without)]


def test_units__of_this_suite__hold_every_test_once() -> None:
    held = Counter(file for unit in units() for file in files_of(ROOT, unit))

    assert held == Counter(ROOT.rglob("test_*.py"))


def test_units__folder_that_nobody_named__is_one_of_its_own_and_first(tmp_path: Path) -> None:
    for name in ("named/inner", "new"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "test_it.py").touch()
    (tmp_path / "test_alone.py").touch()
    (tmp_path / "fakes").mkdir()

    found = units(tmp_path, (("named",), ("named/inner",)))

    assert found == [
        Unit(("new",)),
        Unit(("test_alone.py",)),
        Unit(("named",), ("named/inner",)),
        Unit(("named/inner",)),
    ]


@pytest.mark.parametrize("named", [(("gone",),), (("named",), ("named",))])
def test_units__name_that_is_not_there_or_twice__is_refused(tmp_path: Path, named: tuple[tuple[str, ...], ...]) -> None:
    (tmp_path / "named").mkdir()

    with pytest.raises(SystemExit, match="names what is not there, or twice"):
        units(tmp_path, named)
