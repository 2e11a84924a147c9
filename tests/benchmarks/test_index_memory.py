from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.targets.base import ROOT


@pytest.mark.night
@pytest.mark.timeout(600)
def test_index_memory__few_texts__fit_into_a_query() -> None:
    """The benchmark runs with an engine of its own, whatever the suite uses."""
    own = {"CLICKHOUSE_URL", "VAR_DIR", "SPOOL_DIR", "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.index_memory", "--megabytes", "1", "--kinds", "prose", "ideographs"],
        cwd=ROOT, env={name: value for name, value in os.environ.items() if name not in own},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == ["prose", "ideographs"]
    assert all(len(row) == 7 and float(row[1]) > 0 for row in rows[1:])
