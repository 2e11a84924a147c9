from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.online_evaluations import Course, is_right
from benchmarks.targets.base import ROOT

_COURSE = Course(
    ends=Counter({("done", ""): 700, ("skipped", "budget"): 290, ("failed", "judge_failed"): 10}),
    skipped_by_arm=(150, 140),
    tasks=1_000,
    asked=740,
    scores=700,
    seconds=30.0,
    cpu_seconds=7.4,
    budget=Decimal(1),
    spent=Decimal("0.9999999999"),
    cost_of_tasks=Decimal("0.9999999999"),
    reserved=Decimal(0),
)


@pytest.mark.night
@pytest.mark.timeout(900)
def test_two_workers_share_a_budget_and_one_is_killed() -> None:
    """The benchmark runs with stores of its own, whatever the suite uses."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"CLICKHOUSE_URL", "DATABASE_URL", "REDIS_URL", "VAR_DIR", "SPOOL_DIR"}
    }
    given = ["--tasks", "120", "--workers", "2", "--kill", "1", "--budget", "0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.online_evaluations", *given],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=850, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "All is done or missing, nothing twice, the money right." in done.stdout
    assert "skipped budget" in done.stdout


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": 701},
        {"spent": Decimal("1.0000000001"), "cost_of_tasks": Decimal("1.0000000001")},
        {"cost_of_tasks": Decimal("0.9999999998")},
        {"reserved": Decimal("0.0000000001")},
        {"tasks": 1_001},
        {"ends": Counter({("done", ""): 700, ("due", ""): 300})},
    ],
)
def test_course__with_a_fault__is_not_right(wrong: dict[str, object]) -> None:
    assert is_right(_COURSE)
    assert not is_right(replace(_COURSE, **wrong))  # type: ignore[arg-type]  # The fields are of several types.
