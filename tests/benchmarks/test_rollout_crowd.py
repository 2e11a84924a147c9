from __future__ import annotations

import pytest

from benchmarks.rollouts.crowd import HEAVY_BREAKS
from benchmarks.rollouts.runs import Plan, simulate
from benchmarks.rollouts.worlds import Users, World

RUNS = 20
BEFORE, AFTER = HEAVY_BREAKS[0] - 1, HEAVY_BREAKS[1] + 3
"""The last minute before the client breaks, and one in which all of its failures are judged."""


@pytest.mark.parametrize("users", [300, 2000])
def test_verdict__client_of_a_heavy_user_breaks__target_is_kept(users: int) -> None:
    """When evidence counted before it was known to be one user's, it rolled 30 and 60 % of these back."""
    world = World(users=Users(users, heavy=(0.04, 0.08)))

    runs = [simulate(world, Plan(auto=True, minutes=AFTER), f"heavy:{users}:{number}") for number in range(RUNS)]

    assert sum(run.rolled_back for run in runs) <= 0.15 * RUNS
    # The client broke while the target was served to its user.
    assert all(run.rolled_back or run.minutes > BEFORE for run in runs)


def test_verdict__as_many_failures_of_many_users__rolls_back() -> None:
    world = World(target_errors=0.4, users=Users(2000))

    runs = [simulate(world, Plan(auto=True, minutes=AFTER), f"many:{number}") for number in range(RUNS)]

    assert sum(run.rolled_back for run in runs) >= 0.85 * RUNS
