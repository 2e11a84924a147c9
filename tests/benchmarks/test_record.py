from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from benchmarks.targets.base import ROOT


def _run(arguments: Sequence[str]) -> str:
    """The benchmark runs with an engine and a spool of its own, whatever the suite uses."""
    own = {"CLICKHOUSE_URL", "VAR_DIR", "SPOOL_DIR", "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.record", *arguments],
        cwd=ROOT, env={name: value for name, value in os.environ.items() if name not in own},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.night
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "more",
    [
        ("--rounds", "2"),
        ("--rate", "500", "--same-texts", "--rounds", "1"),
        ("--rounds", "1", "--texts", "cjk", "--text-kilobytes", "20", "--conversation", "3"),
    ],
)
def test_record__few_requests__every_row_is_stored_and_every_table_listed(more: Sequence[str]) -> None:
    printed = _run(("--requests", "300", *more))

    assert re.search(r"all rounds: shipper \d+ µs, engine \d+ µs a request", printed)
    assert re.search(r"^\| requests \| \d+ \| 1\.000 \|", printed, re.MULTILINE)
    assert re.search(r"^\| payloads \| \d+ \| 1\.000 \|", printed, re.MULTILINE)


@pytest.mark.night
@pytest.mark.timeout(600)
def test_record__by_view__each_view_of_ingest_has_its_share() -> None:
    printed = _run(("--views", "--requests", "300", "--batch", "100"))

    line = r"^(\w+|\(no view.*\)): (-?[\d.]+) µs a row, (-?[\d.]+) ms a batch$"
    shares = {name: (float(row), float(batch)) for name, row, batch in re.findall(line, printed, re.MULTILINE)}
    assert {"requests_mv", "payloads_mv", "session_days_mv", "users_daily_mv"} < shares.keys()
    for row, batch in shares.values():
        assert batch == pytest.approx(row * 100 / 1000, abs=0.1)
