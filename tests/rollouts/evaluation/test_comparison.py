"""The figures that people are shown and their intervals."""

from __future__ import annotations

from random import Random

import pytest

from rollouts.evaluation import Metric, Status, assess, figures
from rollouts.evaluation.policy import failing_difference
from tests.rollouts.evaluation.minutes import after_minutes, arm, start


def test_figures__nothing_yet__are_unknown() -> None:
    for metric in Metric:
        shown = figures(start(), metric)
        assert (shown.target, shown.baseline, shown.difference, shown.low, shown.high) == (None,) * 5


@pytest.mark.parametrize("requests", range(1, 30))
def test_figures__all_requests_of_an_arm__are_a_share_of_1(requests: int) -> None:
    state = after_minutes(start(), 30, arm(requests, requests), arm(40 - requests))

    assert (figures(state, Metric.ERROR_RATE).target, figures(state, Metric.ERROR_RATE).baseline) == (1, 0)


def test_figures__both_arms__are_their_own_rates_means_and_costs() -> None:
    state = after_minutes(
        start(), 100, arm(10, 2, ms=(400,) * 8, usd=("0.002",) * 8), arm(10, 1, ms=(200,) * 9, usd=("0.001",) * 9)
    )

    errors, cost = figures(state, Metric.ERROR_RATE), figures(state, Metric.COST)
    average, slow = figures(state, Metric.LATENCY_AVERAGE), figures(state, Metric.LATENCY_P95)

    assert (errors.target, errors.baseline, errors.ratio) == pytest.approx((0.2, 0.1, 2.0))
    assert (average.target, average.baseline, average.ratio) == pytest.approx((400, 200, 2), rel=0.03)
    assert (slow.target, slow.baseline) == pytest.approx((400, 200), rel=0.03)
    assert (cost.target, cost.baseline, cost.ratio) == pytest.approx((0.002, 0.001, 2), rel=0.03)
    for shown in (errors, average, slow, cost):
        assert shown.low is not None
        assert shown.high is not None
        assert shown.difference is not None
        assert shown.low <= shown.difference <= shown.high


def test_figures__provider_slow_while_weights_change__compares_like_with_like() -> None:
    state = after_minutes(start(), 60, arm(5, ms=(300,) * 5), arm(95, ms=(300,) * 95), weight=5)
    state = after_minutes(state, 60, arm(50, ms=(900,) * 50), arm(50, ms=(900,) * 50), stage=2)

    assert figures(state, Metric.LATENCY_AVERAGE).ratio == pytest.approx(1)
    assert figures(state, Metric.LATENCY_P95).ratio == pytest.approx(1)


def test_figures__interval__narrows_with_every_minute() -> None:
    widths = []
    for minutes in (5, 50, 500):
        shown = figures(after_minutes(start(), minutes, arm(10, 1), arm(10, 1)), Metric.ERROR_RATE)
        assert shown.low is not None
        assert shown.high is not None
        widths.append(shown.high - shown.low)

    assert widths == sorted(widths, reverse=True)
    assert widths[2] < widths[1] / 2


def test_figures__percentile_of_few_requests__is_open_above() -> None:
    shown = figures(after_minutes(start(), 2, arm(5, ms=(400,) * 5), arm(95, ms=(200,) * 95)), Metric.LATENCY_P95)

    assert shown.target is not None
    assert shown.high is None


def test_figures__baseline_without_errors__has_no_ratio() -> None:
    shown = figures(after_minutes(start(), 5, arm(10, 1), arm(10)), Metric.ERROR_RATE)

    assert shown.ratio is None
    assert shown.difference == pytest.approx(0.1)


def test_figures__whatever_fails__differs_by_at_least_what_the_page_says() -> None:
    failing = set()
    for seed in range(25):
        rng = Random(seed)
        worse, state = rng.choice([1.2, 1.6, 4]), start()
        usual = rng.choice([0.01, 0.05, 0.2])
        for _ in range(rng.randrange(4, 12)):
            # Outages of both arms, after which the target is worse, change what all requests together look like.
            bad = rng.choice([usual, usual, 0.5, 1.0])
            own, theirs = (sum(rng.random() < rate for _ in range(50)) for rate in (bad * worse, bad))
            slow, usd = (int(300 * worse),) * (50 - own), (f"{0.001 * worse:.5f}",) * (50 - own)
            target = arm(50, own, ms=slow, usd=usd)
            baseline = arm(50, theirs, ms=(300,) * (50 - theirs), usd=("0.001",) * (50 - theirs))
            state = after_minutes(state, 8, target, baseline)
            for metric, one in assess(state).metrics.items():
                if one.status is Status.FAILING:
                    shown = figures(state, metric)
                    assert shown.difference is not None
                    assert shown.baseline is not None
                    assert shown.difference >= failing_difference(metric, shown.baseline, state.policy)
                    failing.add(metric)

    assert failing == {
        Metric.UNANSWERED,
        Metric.ERROR_RATE,
        Metric.LATENCY_P95,
        Metric.LATENCY_AVERAGE,
        Metric.COST,
    }
