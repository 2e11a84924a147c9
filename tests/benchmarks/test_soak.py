from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import soak
from benchmarks.soak import Sample, Sent, Watched, problems
from tests.live.service import ROOT, minimal_environment

MB = 2**20


def watched(*megabytes: int, files: tuple[int, ...] = (), pids: tuple[int, ...] = (), spool: int = 0) -> Watched:
    samples = [
        Sample((pids or (1,) * len(megabytes))[at], size * MB, (files or (40,) * len(megabytes))[at])
        for at, size in enumerate(megabytes)
        for _ in range(16)
    ]
    return Watched({"web-1": samples}, [spool])


def test_problems__steady_after_the_warm_up__none() -> None:
    assert problems(watched(100, 200, 201, 205), Sent(answered=9, abandoned=1), 10) == []


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (watched(200, 200, 230, 260), "web-1 grew from 200 to 260 MB"),
        (watched(200, 200, 200, 200, files=(40, 40, 60, 90)), "web-1 has 90 files open, 40 at the beginning"),
        (watched(200, 200, pids=(1, 2)), "web-1 was replaced"),
        (watched(200, 200, spool=soak.MAX_SPOOL_BYTES + 1), "the spool holds"),
    ],
)
def test_problems__something_grew_or_was_replaced__named(found: Watched, message: str) -> None:
    (problem,) = problems(found, Sent(answered=9, abandoned=1), 10)

    assert problem.startswith(message)


@pytest.mark.parametrize("recorded", [9, 11])
def test_problems__log_holds_other_than_was_sent__named(recorded: int) -> None:
    assert problems(watched(200), Sent(answered=9, abandoned=1), recorded) == [
        f"9 answered and 1 abandoned, {recorded} recorded"
    ]


@pytest.mark.night
def test_soak__of_a_few_seconds__tells_of_every_process_and_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--seconds", "4", "--rate", "20"]
    # The environment lacks the addresses of the suite's services, so that the soak starts its own.
    environment = minimal_environment(tmp_path / "unused")

    output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout

    assert " 0 failed" in output
    assert "recorded\nspool" in output
    assert "abandoned, " not in output.partition("out of bounds")[2], output
    roles = {line.split(" ")[1] for line in output.splitlines() if line.startswith("| ")}
    assert {"web-1", "web-2", "shipper", "engine", "redis"} <= roles
