from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.run import MAX_RERUNS, ROOT, check_command, failed_tests, verdict


def never() -> int:
    raise AssertionError("tests ran again")


def test_verdict__all_passed__is_good_and_nothing_runs_again() -> None:
    assert verdict(0, [], never) == 0


def test_verdict__failed_once__is_good_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict(1, ["a.py::test_it"], lambda: 0) == 0

    said = ["===== unsteady, failed beside others and passed alone:", "a.py::test_it"]
    assert capsys.readouterr().out.splitlines()[-2:] == said


def test_verdict__all_cases_of_one_function_failed__count_once(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [f"a.py::test_it[{number}]" for number in range(MAX_RERUNS + 1)]

    assert verdict(1, cases, lambda: 0) == 0

    assert capsys.readouterr().out.splitlines()[-1] == "a.py::test_it"


def test_verdict__failed_twice__fails() -> None:
    assert verdict(1, ["a"], lambda: 1) == 1


@pytest.mark.parametrize(
    ("code", "failed"),
    [(1, [str(number) for number in range(MAX_RERUNS + 1)]), (1, []), (2, ["a"]), (3, ["a"]), (-9, ["a"]), (5, [])],
)
def test_verdict__many_failed_or_run_broke_off__fails_at_once(
    code: int, failed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict(code, failed, never) == code

    assert capsys.readouterr().out.splitlines()[-len(failed) - 1 :] == ["===== failed:", *failed]


def test_failed_tests__of_a_run__are_those_of_its_cache(tmp_path: Path) -> None:
    assert failed_tests(tmp_path) == []
    (tmp_path / "v" / "cache").mkdir(parents=True)
    (tmp_path / "v" / "cache" / "lastfailed").write_text(json.dumps({"b": True, "a": True}))

    assert failed_tests(tmp_path) == ["a", "b"]


def test_checks__of_this_suite__are_all_programs_that_make_check_runs() -> None:
    """The checks leave out compiling the TypeScript client, which the tests of the clients do."""

    def programs(words: list[str]) -> list[str]:
        printed = subprocess.run([*words, "--dry-run"], cwd=ROOT.parent, capture_output=True, text=True, check=True)
        return re.findall(r"(?:^|\s)\.venv/bin/[\w-]+ [\w.-]*", printed.stdout)

    assert programs(check_command()) == programs(["make", "check"])
