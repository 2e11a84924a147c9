"""The tables of memory, and one short run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import payloads
from benchmarks.memory import summary, table
from tests.live.service import ROOT, minimal_environment


def test_table__processes__largest_first_and_together() -> None:
    lines = table({"redis": 2.0, "engine": 140.4, "web-1": 60.0}).splitlines()

    assert lines[2:] == ["| engine | 140 |", "| web-1 | 60 |", "| redis | 2 |", "| together | 202 |"]


def test_summary__restarts_and_large_answers__median_and_course() -> None:
    lines = summary(
        [2.0, 1.0, 1.5], {"web-1": 60.0, "web-2": 58.0, "redis": 2.0}, [[58.0, 66.0]], at_once=8
    ).splitlines()

    assert lines == [
        "Restart to first answer: 1.50 s (2.00, 1.00, 1.50).",
        "Web workers before and after each 8 answers of 64 MB at once, MB: 58, 60; 58, 66.",
    ]
    assert summary([], {"web-1": 60.0}, [], at_once=1) == ""


def test_answer__of_any_size__has_exactly_that_many_bytes_and_the_end() -> None:
    for size in (payloads.ANSWER_BYTES, 100_000):
        answer = payloads.answer(size)

        assert len(answer) == size
        assert json.loads(answer)["choices"][0]["message"]["content"].endswith(payloads.ANSWER_END.decode())


def test_memory__short_run__names_every_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.memory", "--restarts", "1", "--idle", "0", "--large", "1"]
    # The environment lacks the addresses of the suite's services, so that the benchmark starts its own.
    environment = minimal_environment(tmp_path / "unused")

    output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout

    for role in ("serve", "supervisor", "engine", "redis", "sandbox", "shipper", "web-1", "web-2", "together"):
        assert f"| {role} | " in output
    assert "Restart to first answer: " in output
