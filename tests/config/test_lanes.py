from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lanes import works_of
from tests.run import ROOT

_MODULES = {
    "test_good.py": """
def test_one(): print("said by one")
def test_two(): pass
""",
    "test_bad.py": """
import pytest
@pytest.fixture(scope="module")
def ends():
    yield
    raise ValueError("at the end of the module")
def test_wrong(): assert 1 == 2, "wrong"
def test_with_an_end(ends): pass
""",
    "test_lost.py": """
import os
def test_before(): pass
def test_lost(): os._exit(7)
def test_after(): pass
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("modules")
    for name, text in _MODULES.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    command = [sys.executable, "-m", "pytest", "--lanes", "2", "--used", str(folder / "used.json")]
    named = ["-c", str(ROOT.parent / "pyproject.toml"), "--rootdir", str(folder)]
    options = [*named, "-q", "-p", "no:randomly", "-o", f"cache_dir={folder / 'cache'}"]
    done = subprocess.run(
        [*command, *options, *(str(folder / name) for name in _MODULES)],
        cwd=ROOT.parent,
        # Summaries are cut at the width of the terminal.
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    return done.stdout


def test_lanes__modules__are_all_run_and_counted(printed: str) -> None:
    assert "2 failed, 5 passed, 1 error" in printed


def test_lanes__failures__are_told_with_their_reasons(printed: str) -> None:
    assert "AssertionError: wrong" in printed
    assert "ValueError: at the end of the module" in printed


def test_lanes__process_that_died__is_named_with_its_test(printed: str) -> None:
    assert re.search(r"FAILED \S*test_lost.py::test_lost - the process that ran it ended with 7", printed)


def test_lanes__failed_tests__are_those_that_pytest_repeats(printed: str, folder: Path) -> None:
    failed = json.loads((folder / "cache" / "v" / "cache" / "lastfailed").read_text(encoding="utf-8"))

    assert {name.rpartition("::")[2] for name in failed} == {"test_wrong", "test_with_an_end", "test_lost"}


def test_lanes__seconds__are_noted_by_module(printed: str, folder: Path) -> None:
    used = json.loads((folder / "used.json").read_text(encoding="utf-8"))

    assert {Path(name).name for name in used["modules"]} == set(_MODULES)
    assert used["cpu"]["collection"] > 0


def test_works__of_this_run__hold_every_test_once_and_the_longest_come_first(request: pytest.FixtureRequest) -> None:
    tests = request.session.items
    works = works_of(tests)

    assert sorted(test.nodeid for work in works for test in work.tests) == sorted(test.nodeid for test in tests)
    assert [work.seconds for work in works] == sorted((work.seconds for work in works), reverse=True)
    assert all(work.tests for work in works)
