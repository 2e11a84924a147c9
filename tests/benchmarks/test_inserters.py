from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from benchmarks.targets.base import ROOT


def _run(*arguments: str) -> str:
    """The benchmark runs with stores of its own, whatever the suite uses."""
    own = {"CLICKHOUSE_URL", "REDIS_URL", "VAR_DIR", "SPOOL_DIR", "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.inserters", *arguments],
        cwd=ROOT, env={name: value for name, value in os.environ.items() if name not in own},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.night
@pytest.mark.timeout(600)
@pytest.mark.parametrize("inserters", ["0", "2"])
def test_inserters__few_hosts__every_row_is_stored_once(inserters: str) -> None:
    printed = _run("--hosts", "4", "--every", "0.5", "--seconds", "4", "--inserters", inserters)

    assert re.search(r"^engine \d+\.\d\d cores, inserters \d+\.\d\d, shippers", printed, re.MULTILINE)
    assert re.search(r"^(\d+) rows, inserted after", printed, re.MULTILINE)


@pytest.mark.night
@pytest.mark.timeout(600)
def test_inserters__rows_at_once__all_are_stored() -> None:
    assert re.search(r"^3 rows at once: \d refused at first, 3 stored$", _run("--at-once", "3"), re.MULTILINE)
