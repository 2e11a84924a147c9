from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.targets.base import ROOT


@pytest.mark.night
@pytest.mark.timeout(600)
def test_text_indexes__few_rows__counts_are_those_without_an_index() -> None:
    """The benchmark runs with an engine of its own, whatever the suite uses."""
    own = {"CLICKHOUSE_URL", "VAR_DIR", "SPOOL_DIR", "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.text_indexes", "--rows", "300", "--fragments", "2"],
        cwd=ROOT, env={name: value for name, value in os.environ.items() if name not in own},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    names = {row[0] for row in rows}
    assert {"payloads_letters", "payloads_words", "a word", "three words", "a word that is nowhere"} <= names
    searches = [row for row in rows if len(row) == 7 and row[0] != "Fragment" and row[1] != "in no text"]
    assert searches
    assert {row[-1] for row in searches} == {"0"}
