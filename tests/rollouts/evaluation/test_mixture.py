"""The mixture of processes begun at the stages, which finds late harm."""

from __future__ import annotations

import math

import pytest

from rollouts.evaluation.statistics.mixture import beginnings, begun, evidence


@pytest.mark.parametrize(
    ("weights", "first_share", "expected"),
    [
        ((1, 5, 10, 25, 50, 75, 100), 0.5, (0.5, *(0.5 * number / 15 for number in range(1, 6)), 0.0)),
        ((50, 100), 0.5, (1.0, 0.0)),
        ((100,), 0.8, (1.0,)),
        ((20, 60), 0.8, (0.8, 0.2)),
    ],
)
def test_beginnings__stages_with_a_control__share_what_the_first_leaves(
    weights: tuple[int, ...], first_share: float, expected: tuple[float, ...]
) -> None:
    assert beginnings(weights, first_share) == pytest.approx(expected)


def test_evidence__processes_one_by_one__is_their_weighted_mean() -> None:
    """The sum that stands for all processes that have begun equals the sum of the separate processes."""
    weights = (0.5, 0.3, 0.2)
    factors = [
        [(0.7, -0.2), (0.1, 0.4)],
        [(1.5, 0.3), (-2.0, 0.6)],
        [(0.9, 0.9)],
    ]  # The blocks of two tilts are listed by stage.
    logs: tuple[float, ...] = (math.log(weights[0]),) * 2
    for stage, blocks in enumerate(factors):
        logs = begun(logs, weights[stage]) if stage else logs
        for block in blocks:
            logs = (logs[0] + block[0], logs[1] + block[1])

    def process(begins: int) -> float:
        taken = [block for blocks in factors[begins:] for block in blocks]
        return sum(math.exp(sum(block[tilt] for block in taken)) for tilt in (0, 1)) / 2

    expected = sum(weight * process(begins) for begins, weight in enumerate(weights))
    assert evidence(logs, 0.0) == pytest.approx(math.log(expected))


def test_evidence__nothing_yet__is_1_whatever_waits() -> None:
    assert evidence((math.log(0.5),) * 5, 0.5) == pytest.approx(0)
    assert evidence((0.0,), 0.0) == 0


def test_evidence__far_below_and_far_above__stays_finite() -> None:
    assert evidence((-5000.0,), 0.1) == pytest.approx(math.log(0.1))
    assert evidence((-5000.0,), 0.0) == -5000
    assert evidence((5000.0, 0.0), 0.1) == pytest.approx(5000 - math.log(2))
