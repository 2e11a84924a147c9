from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import payloads
from tests.live.service import ROOT, minimal_environment


def test_answer__of_any_size__has_exactly_that_many_bytes_and_the_end() -> None:
    for size in (payloads.ANSWER_BYTES, 100_000):
        answer = payloads.answer(size)

        assert len(answer) == size
        assert json.loads(answer)["choices"][0]["message"]["content"].endswith(payloads.ANSWER_END.decode())


@pytest.mark.night
def test_memory__short_run__names_every_process(tmp_path: Path) -> None:
    numbers = {"first-starts": "1", "restarts": "1", "idle": "0", "large": "1"}
    options = (word for name, number in numbers.items() for word in (f"--{name}", number))
    command = [sys.executable, "-m", "benchmarks.memory", *options]
    # The environment lacks the addresses of the suite's services, so that the benchmark starts its own.
    environment = minimal_environment(tmp_path / "unused")

    output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout

    for role in ("serve", "supervisor", "engine", "redis", "shipper", "web-1", "web-2", "together"):
        assert f"| {role} | " in output
    for start in ("Restart", "First start on SQLite", "First start on PostgreSQL"):
        assert f"{start} to first answer: " in output
