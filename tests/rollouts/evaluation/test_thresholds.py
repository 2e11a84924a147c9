"""Thresholds of a rollout's own: what may fail and what passes follow them, and what they cost is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollouts.evaluation import (
    ArmCounts,
    Metric,
    MinuteCounts,
    Policy,
    State,
    Status,
    Traffic,
    assess,
    initial_state,
    replay,
)
from rollouts.evaluation.policy import Threshold, failing_difference
from rollouts.evaluation.threshold_costs import sentences

MINUTES = 400


def answered(requests: int, unanswered: int, latency_bin: int = 300) -> ArmCounts:
    return ArmCounts(
        requests=requests,
        unanswered=unanswered,
        judged=requests,
        answered=requests - unanswered,
        latency={latency_bin: requests - unanswered},
        units=requests,
    )


def after(policy: Policy, target: int, baseline: int, *, slower: int = 0) -> State:
    """Returns the state after minutes with 200 requests of each arm, of which so many are unanswered."""
    state = initial_state(policy, latency={290: 600, 300: 350, 310: 50}, cost={}, weights=[50], sticky=False)
    minutes = [
        MinuteCounts(number, 1, 50, answered(200, target, 300 + slower), answered(200, baseline))
        for number in range(1, MINUTES + 1)
    ]
    return replay(state, minutes)


def own(metric: Metric, **threshold: float) -> Policy:
    return replace(Policy(), thresholds={metric.value: Threshold(**threshold)})


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        (Policy(), Status.FAILING),
        (own(Metric.UNANSWERED, fail_from=0.02, margin=0.03), Status.PASSING),
        (own(Metric.UNANSWERED, fail_from=0.004, margin=0.004), Status.FAILING),
    ],
)
def test_rate__half_a_point_worse__fails_from_the_threshold_on_and_passes_below_the_margin(
    policy: Policy, status: Status
) -> None:
    assert assess(after(policy, 2, 1)).metrics[Metric.UNANSWERED].status is status


def test_rate__margin_of_a_tenth_of_a_point__takes_longer_to_pass() -> None:
    usual = after(Policy(), 0, 0).metrics[Metric.UNANSWERED].safety
    tight = after(own(Metric.UNANSWERED, fail_from=0.001, margin=0.001), 0, 0).metrics[Metric.UNANSWERED].safety
    assert usual > 5 * tight > 0


def test_difference__by_default_and_by_the_rollout() -> None:
    policy = Policy()
    assert failing_difference(Metric.UNANSWERED, 0.1, policy) == pytest.approx(0.025)
    assert failing_difference(Metric.UNANSWERED, 0.1, own(Metric.UNANSWERED, fail_from=0.002)) == 0.002
    assert failing_difference(Metric.LATENCY_P95, 200.0, own(Metric.LATENCY_P95, fail_from=1.5)) == 100.0
    assert failing_difference(Metric.COST, 1.0, own(Metric.COST, fail_from=1.2)) == pytest.approx(0.5)


def test_costs__of_own_thresholds_alone__in_requests_and_time() -> None:
    traffic = Traffic(60.0, 0.02)
    assert list(sentences(Policy(), traffic, 50)) == []
    [usual] = sentences(own(Metric.UNANSWERED, fail_from=0.01, margin=0.02), traffic, 50)
    assert usual == (
        "Unanswered, at 50 %: a target that is just as much worse as may fail is found after about 8,000 of its"
        " requests, 5 hours, and a harmless one passes after about 1,000 of its requests, 50 minutes."
    )
    [tight] = sentences(own(Metric.UNANSWERED, fail_from=0.001, margin=0.002), traffic, 50)
    assert "may fail is never found, and a harmless one passes after about 80,000 of its requests, 44 hours." in tight
