from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.erasure import Work, table
from benchmarks.targets.base import ROOT


def test_table__work__rates_and_sizes() -> None:
    lines = table([Work("export", 1_000, 2_500_000, 0.5, 0.25), Work("deletion", 20, 0, 4.0, None)]).splitlines()

    assert lines[2:] == ["| export | 1,000 | 2.5 | 0.50 | 2,000 | 0.25 |", "| deletion | 20 | - | 4.00 | 5 | - |"]


@pytest.mark.timeout(600)
def test_erasure__small_history__everything_that_is_asked_for_is_erased() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"CLICKHOUSE_URL", "VAR_DIR"}}
    command = [sys.executable, "-m", "benchmarks.erasure", "--requests", "20_000"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=550, check=False
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 6
    assert all(int(row[1].replace(",", "")) > 0 for row in rows), done.stdout
