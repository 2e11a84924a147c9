from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.targets.base import ROOT


@pytest.mark.night
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
