"""The state of an evaluation from minute to minute, by the first formula."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from random import Random

import pytest

from rollouts.evaluation.clusters import ClusterSums, design_effect
from rollouts.evaluation.evidence import odds_factors
from rollouts.evaluation.formula_1 import Metric, MinuteCounts, Policy, State, advance, initial_state, replay
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.margin import margin_odds, margin_rate
from tests.rollouts.formula_1.minutes import after_minutes, arm, start
from tests.rollouts.formula_1.test_replay import STORED, evaluation


def stored(value: MinuteCounts) -> MinuteCounts:
    # Databases store the members of an object in their own order.
    return from_json(MinuteCounts, json.loads(json.dumps(to_json(value), sort_keys=True)))


@pytest.mark.parametrize("name", STORED)
def test_advance__stored_and_read_after_every_minute__is_the_same_to_the_last_digit(name: str) -> None:
    state, counts = evaluation(name)
    unbroken = replay(state, counts)

    for minute in counts:
        state = advance(from_json(State, json.loads(json.dumps(to_json(state), sort_keys=True))), stored(minute))

    assert state == unbroken


def test_advance__minute_that_was_counted__is_refused() -> None:
    state = after_minutes(start(), 3, arm(5), arm(5))

    with pytest.raises(ValueError, match="minute 3 of stage 1 does not follow"):
        advance(state, MinuteCounts(3, 1, 50, arm(5), arm(5)))
    with pytest.raises(ValueError, match="minute 2 of stage 1 does not follow"):
        advance(state, MinuteCounts(2, 1, 50, arm(5), arm(5)))


def test_advance__second_stage_within_the_minute__counts_on_from_nothing() -> None:
    state = after_minutes(start(), 3, arm(5), arm(5))

    state = advance(state, MinuteCounts(3, 2, 75, arm(4), arm(1)))

    assert (state.stage, state.stage_requests, state.target.requests, state.minutes) == (2, 4, 19, 4)


def test_advance__totals__are_plain_sums() -> None:
    state = after_minutes(start(), 2, arm(3, 1, ms=(100, 200), usd=("0.5", "0.25")), arm(2, ms=(50, 70)))

    assert (state.target.requests, state.target.errors, state.target.answered, state.target.latency_ms) == (
        6,
        2,
        4,
        600,
    )
    assert (state.target.priced, state.target.cost_usd) == (4, Decimal("1.5"))
    assert (state.baseline.priced, state.baseline.latency_ms) == (0, 240)


def test_advance__empty_minute__changes_no_evidence() -> None:
    state = after_minutes(start(), 5, arm(10, 2, ms=(900,) * 8), arm(10, ms=(300,) * 10))

    later = after_minutes(state, 1, arm(0), arm(0))

    assert later.metrics == state.metrics


def test_advance__no_baseline_beside_it__finds_no_fault() -> None:
    state = after_minutes(start(), 50, arm(10, 9, ms=(9000,)), arm(0), weight=100)

    assert all(state.metrics[metric].evidence == 0 for metric in Metric)


def test_advance__no_history__learns_from_the_first_minutes_without_judging_them() -> None:
    state = initial_state(Policy(), latency={}, cost={})
    minute = (arm(10, ms=(3000,) * 10), arm(10, ms=(100,) * 10))

    learning = after_minutes(state, 5, *minute)
    judging = after_minutes(learning, 1, *minute)

    assert sum(learning.latency.values.values()) == 100
    assert learning.latency.reference is not None
    assert learning.metrics[Metric.LATENCY_AVERAGE].evidence == 0
    assert judging.metrics[Metric.LATENCY_AVERAGE].evidence != 0
    assert judging.latency == learning.latency
    assert state.cost.reference is None


def test_advance__margin__is_that_of_the_minutes_before() -> None:
    """The margin must not know the minute it is applied to."""
    known = after_minutes(start(), 10, arm(0), arm(20, 1))
    margin = margin_odds(errors=10, requests=200)
    assert margin is not None

    state = after_minutes(known, 1, arm(10, 1), arm(10, 5))

    [expected] = odds_factors(events=1, drawn=10, all_events=6, total=20, odds=(margin,))
    assert state.metrics[Metric.ERROR_RATE].safe[0] == -expected


def test_advance__little_known_of_the_baseline__has_no_margin_yet() -> None:
    state = after_minutes(start(), 1, arm(20, 1), arm(99, 5))

    assert after_minutes(state, 1, arm(20, 1), arm(99, 5)).metrics[Metric.ERROR_RATE].safe[0] == 0


def test_advance__peak__keeps_the_strongest_evidence() -> None:
    bad = after_minutes(start(), 5, arm(10, 8), arm(10, 1))
    good = after_minutes(bad, 30, arm(10, 0), arm(10, 3))

    one = good.metrics[Metric.ERROR_RATE]
    assert one.peak == bad.metrics[Metric.ERROR_RATE].evidence > one.evidence


def test_design_effect__units__is_their_variance_by_that_of_independent_requests() -> None:
    rng = Random(3)
    units = [(rng.randint(1, 30), 0) for _ in range(50)]
    units = [(requests, rng.randint(0, requests)) for requests, _ in units]
    requests, events = sum(n for n, _ in units), sum(x for _, x in units)
    rate = events / requests
    sums = ClusterSums(
        requests=requests,
        requests_squared=sum(n * n for n, _ in units),
        total=events,
        total_squared=sum(x * x for _, x in units),
        cross=sum(x * n for n, x in units),
        values_squared=events,
    )
    expected = sum((x - rate * n) ** 2 for n, x in units) / (rate * (1 - rate) * requests)

    assert expected > 1
    assert design_effect(sums) == pytest.approx(expected)


@pytest.mark.parametrize("sums", [ClusterSums(), ClusterSums(10, 10, 0, 0, 0, 0), ClusterSums(10, 10, 10, 10, 10, 10)])
def test_design_effect__nothing_varies__is_1(sums: ClusterSums) -> None:
    assert design_effect(sums) == 1


def test_advance__clustered_requests__count_for_less() -> None:
    minute = MinuteCounts(1, 1, 50, arm(20, 15), arm(20, 2))
    clusters = {Metric.ERROR_RATE: ClusterSums(20, 200, 2, 4, 20, 2)}

    alone = advance(start(), minute).metrics[Metric.ERROR_RATE]
    clustered = advance(start(), replace(minute, clusters=clusters)).metrics[Metric.ERROR_RATE]

    assert clustered.design > 1
    assert 0 < clustered.evidence < alone.evidence


def test_advance__slow_spell_of_both_arms_while_weights_change__is_no_evidence() -> None:
    """Pooled over stages the target looks slower, because it had more traffic while the provider was slow."""
    state = after_minutes(start(), 60, arm(5, ms=(300,) * 5), arm(95, ms=(300,) * 95), weight=5)

    slow = after_minutes(state, 60, arm(50, ms=(900,) * 50), arm(50, ms=(900,) * 50), stage=2)

    pooled = Counter(target=slow.target.latency_ms, baseline=slow.baseline.latency_ms)
    assert pooled["target"] / slow.target.answered > 1.3 * pooled["baseline"] / slow.baseline.answered
    assert all(slow.metrics[metric].evidence <= 1e-9 for metric in Metric)


@pytest.mark.parametrize(
    ("rate", "bound"), [(0.0, 0.01), (0.005, 0.015), (0.01, 0.02), (0.02, 0.04), (0.3, 0.6), (0.6, 0.8), (1.0, 1.0)]
)
def test_margin_rate__baseline__is_twice_it_or_a_point_more(rate: float, bound: float) -> None:
    assert margin_rate(rate) == pytest.approx(bound)


@pytest.mark.parametrize("errors", [0, 1, 50, 99, 100])
def test_margin_odds__any_rate__are_above_1(errors: int) -> None:
    odds = margin_odds(errors=errors, requests=100)

    assert odds is not None
    assert odds > 0
