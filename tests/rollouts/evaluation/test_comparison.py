"""The figures that people are shown and their intervals."""

from __future__ import annotations

import pytest

from rollouts.evaluation import Metric, figures
from tests.rollouts.evaluation.minutes import after_minutes, arm, start


def test_figures__nothing_yet__are_unknown() -> None:
    for metric in Metric:
        shown = figures(start(), metric)
        assert (shown.target, shown.baseline, shown.difference, shown.low, shown.high) == (None,) * 5


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
