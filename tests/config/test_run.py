"""The units in which `make test` runs the suite."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.live import read_only_root
from tests.run import ELSEWHERE, MAX_RERUNS, ROOT, Checks, Run, Unit, environment, units, verdict


def files_of(root: Path, unit: Unit) -> list[Path]:
    """Returns the test files of a folder, as pytest collects them."""
    found = [file for path in unit.paths for file in [root / path, *(root / path).rglob("test_*.py")] if file.is_file()]
    return [file for file in found if not any(file.is_relative_to(root / path) for path in unit.without)]


def test_units__of_this_suite__hold_every_test_once() -> None:
    held = Counter(file for unit in units() for file in files_of(ROOT, unit))
    elsewhere = {file for folder in ELSEWHERE for file in (ROOT / folder).rglob("test_*.py")}

    assert elsewhere and held == Counter(set(ROOT.rglob("test_*.py")) - elsewhere)


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


@pytest.mark.parametrize(("refusal", "asked"), [("", {"live", "live/operators browser"}), ("not permitted", set())])
def test_environment__units_of_live_tests__ask_for_a_read_only_root_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, refusal: str, asked: set[str]
) -> None:
    monkeypatch.delenv(read_only_root.ASKED, raising=False)
    monkeypatch.setattr(read_only_root, "refusal", lambda: refusal)
    all_units: list[Unit | Checks] = [
        Checks(),
        Unit(("live",), ("live/operators",)),
        Unit(("live/operators", "browser")),
        Unit(("console",)),
    ]

    assert {unit.name for unit in all_units if read_only_root.ASKED in environment(unit)} == asked


def ended(folder: Path, code: int, *failed: str) -> Run:
    """Returns a run in the state in which its pytest leaves it; each failed test has a line in the short summary."""
    cache_path = folder / str(len(list(folder.iterdir()))) / "v" / "cache"
    cache_path.mkdir(parents=True)
    (cache_path / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
    summary = "".join(f"FAILED {name} - assert 1 == 2\n" for name in failed)
    printed = f"ERROR    captured.log: a test\n=== short test summary info ===\n{summary}"
    return Run(Unit(("named",)), code, cache_path.parent.parent, printed)


def never(run: Run) -> int:
    raise AssertionError(f"{run} was run again")


def test_verdict__all_passed__is_good_and_nothing_runs_again(tmp_path: Path) -> None:
    assert verdict([ended(tmp_path, 0), ended(tmp_path, 0)], never) == 0


def test_verdict__failed_once__is_good_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again: list[Run] = []
    good, bad = ended(tmp_path, 0), ended(tmp_path, 1, "a.py::test_it")

    def passes(run: Run) -> int:
        again.append(run)
        return 0

    assert verdict([good, bad], passes) == 0

    assert again == [bad]
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "===== unsteady, failed beside others and passed alone:",
        "FAILED a.py::test_it - assert 1 == 2",
    ]


def test_verdict__all_cases_of_one_function_failed__runs_again_and_names_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [f"a.py::test_it[{number}]" for number in range(MAX_RERUNS + 1)]

    assert verdict([ended(tmp_path, 1, *cases)], lambda run: 0) == 0

    assert capsys.readouterr().out.splitlines()[-1] == "FAILED a.py::test_it[0] - assert 1 == 2"


def test_verdict__failed_twice__fails(tmp_path: Path) -> None:
    assert verdict([ended(tmp_path, 1, "a"), ended(tmp_path, 1, "b")], lambda run: int(run.failed == ["b"])) == 1


@pytest.mark.parametrize(
    ("code", "failed"),
    [(1, [str(number) for number in range(MAX_RERUNS + 1)]), (1, []), (2, ["a"]), (3, ["a"]), (-9, ["a"]), (5, [])],
)
def test_verdict__many_failed_or_run_broke_off__fails_at_once(
    tmp_path: Path, code: int, failed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict([ended(tmp_path, 0), ended(tmp_path, code, *failed)], never) == code

    reasons = [f"FAILED {name} - assert 1 == 2" for name in failed] or [f"named: exit {code} without a failed test"]
    assert capsys.readouterr().out.splitlines()[-len(reasons) - 1 :] == ["===== failed:", *reasons]


def test_verdict__check_failed__fails_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checks = Run(Checks(), 2, tmp_path, "core/models.py:1: error: Incompatible types in assignment")

    assert verdict([ended(tmp_path, 0), checks], never) == 2

    assert capsys.readouterr().out.splitlines()[-1] == "checks: exit 2 without a failed test"


def test_checks__of_this_suite__are_all_programs_that_make_check_runs() -> None:
    """The unit of checks leaves out compiling the TypeScript client, which the tests of the clients do."""

    def programs(words: list[str]) -> list[str]:
        printed = subprocess.run([*words, "--dry-run"], cwd=ROOT.parent, capture_output=True, text=True, check=True)
        return [line for line in printed.stdout.splitlines() if line.startswith(".venv/bin/")]

    assert programs(Checks().command(ROOT)) == programs(["make", "check"])
