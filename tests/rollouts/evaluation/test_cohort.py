"""The looks at a cohort of users: no factor may have a mean above 1 while the target is at its margin or beyond it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts.evaluation import Metric, MinuteCounts, State, UserCounts, advance
from rollouts.evaluation.cohort import choice_factor, due_look, log_mean_of_many, not_worse, weight_before
from rollouts.evaluation.policy import PASS_AT
from rollouts.evaluation.statistics.grid import BINS_PER_MARGIN
from rollouts.evaluation.users import LOOKS, log_mean_of_choices
from tests.rollouts.evaluation.minutes import after_minutes, arm, start

EXACT = 1e-9
COST_MARGIN_BINS = 2 * BINS_PER_MARGIN
USERS = 40
GOOD = UserCounts(errors={0: USERS}, unanswered={0: USERS})


def users(metric: Metric, numbers: Sequence[int], *, at_margin: bool = False) -> UserCounts:
    if metric is Metric.COST:
        return UserCounts(cost=Counter(number + 1 + at_margin * COST_MARGIN_BINS for number in numbers))
    # At the margin, as many requests are slow by the margin as are slow in the baseline.
    return UserCounts(eased=Counter(numbers)) if at_margin else UserCounts(slow=Counter(numbers))


@given(values=st.lists(st.integers(0, 400), min_size=2, max_size=9), data=st.data())
@pytest.mark.parametrize("metric", [Metric.COST, Metric.LATENCY_P95])
def test_not_worse__every_choice_of_target_users_at_the_margin__has_mean_1(
    metric: Metric, values: list[int], data: st.DataObject
) -> None:
    drawn, state = data.draw(st.integers(1, len(values) - 1)), start(sticky=True)
    factors = []
    for chosen in combinations(range(len(values)), drawn):
        own = [values[one] for one in chosen]
        theirs = [values[one] for one in range(len(values)) if one not in chosen]
        factors.append(not_worse(state, metric, users(metric, own, at_margin=True), users(metric, theirs)))

    assert math.fsum(map(math.exp, factors)) / len(factors) == pytest.approx(1, abs=EXACT)


RATES = st.sampled_from([0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3])


@given(rates=st.lists(RATES, min_size=2, max_size=4), data=st.data())
@settings(max_examples=40)
def test_choice_factor__every_outcome_of_users_at_the_margin__has_mean_at_most_1(
    rates: list[float], data: st.DataObject
) -> None:
    """Each user has a rate of the user's own, whose odds are `margin` times as high in the target."""
    drawn, requests = data.draw(st.integers(1, len(rates) - 1)), data.draw(st.integers(1, 2))
    margin = data.draw(st.sampled_from([1.1, 2.04, 5.0]))
    mean, choices = 0.0, list(combinations(range(len(rates)), drawn))
    for chosen in choices:
        chances = [
            rate * margin / (1 - rate + rate * margin) if user in chosen else rate for user, rate in enumerate(rates)
        ]
        for bad in product(range(requests + 1), repeat=len(rates)):
            chance = math.prod(
                math.comb(requests, number) * one**number * (1 - one) ** (requests - number)
                for number, one in zip(bad, chances, strict=True)
            )
            shares = [number / requests for number in bad]
            own = [shares[user] / (margin - (margin - 1) * shares[user]) for user in chosen]
            theirs = [share for user, share in enumerate(shares) if user not in chosen]
            mean += chance * math.exp(choice_factor(own, theirs)) / len(choices)

    assert mean < 1 + EXACT


@given(weights=st.lists(st.floats(0.01, 20), min_size=2, max_size=40), data=st.data())
def test_log_mean_of_many__any_weights__is_hardly_above_the_exact_mean(
    weights: list[float], data: st.DataObject
) -> None:
    drawn = data.draw(st.integers(1, len(weights) - 1))
    exact = log_mean_of_choices(weights, drawn)

    assert exact - EXACT <= log_mean_of_many(weights, drawn) < exact + 1


def test_choice_factor__more_users_than_are_counted_out__have_about_the_exact_factor() -> None:
    def factor(number: int) -> float:
        return choice_factor([0.0] * number + [0.1] * 5, [0.0] * number + [0.1] * 15)

    assert factor(40) > 1
    assert factor(41) == pytest.approx(factor(40), abs=0.25)


@pytest.mark.parametrize("shares", [[], [0.0], [0.3]])
def test_choice_factor__no_users_or_all_alike__says_nothing(shares: list[float]) -> None:
    assert choice_factor(shares * 5, shares * 9) == pytest.approx(0)
    assert choice_factor(shares * 5, []) == 0


@pytest.mark.parametrize(
    ("weights", "stage", "expected"),
    [((50, 75, 100), 1, 0), ((1, 25, 50, 75, 100), 3, 0), ((1, 25, 50, 75, 100), 4, 50), ((10, 60, 90), 3, 60)],
)
def test_weight_before__first_cohort__has_everybody(weights: tuple[int, ...], stage: int, expected: int) -> None:
    assert weight_before(weights, stage) == expected


def at_stage_of(weight: int) -> State:
    return after_minutes(start(weights=(weight, 100), sticky=True), 3, arm(400, 8), arm(400, 8), weight=weight)


@pytest.mark.parametrize(
    ("minutes", "expected"), [(LOOKS[0] - 1, None), (LOOKS[0], 0), (LOOKS[1] - 1, 0), (LOOKS[1], 1), (5_000, 2)]
)
def test_due_look__minutes_of_the_stage__the_latest_look(minutes: int, expected: int | None) -> None:
    state = at_stage_of(50)
    assert due_look(state, state.stage_minute + minutes) == expected
    assert due_look(replace(state, looks=2), state.stage_minute + minutes) == (2 if expected == 2 else None)


@pytest.mark.parametrize("weight", [49, 100])
def test_due_look__no_half_of_the_traffic_or_no_baseline__none(weight: int) -> None:
    assert due_look(at_stage_of(weight), 5_000) is None


def looked(state: State, minute: int, target: UserCounts, baseline: UserCounts, *, stage: int = 1) -> State:
    cohort = {"target": target, "baseline": baseline}
    weight = state.weights[stage - 1]
    return advance(state, MinuteCounts(minute, stage, weight, arm(400, 8), arm(400, 8), cohort=cohort))


def test_advance__target_users_fare_as_well__passes_by_them_and_keeps_it_in_the_next_stage() -> None:
    fair = UserCounts(errors={0: 60, 50: 40, 100: 20}, unanswered={0: 60, 50: 40, 100: 20})
    state = after_minutes(start(weights=(50, 75, 100), sticky=True), 3, arm(400, 8), arm(400, 8))
    assert state.metrics[Metric.ERROR_RATE].safety == 0

    state = looked(state, 1 + LOOKS[0], fair, fair)

    assert state.looks == 1
    passed = state.metrics[Metric.ERROR_RATE].safety
    assert passed >= PASS_AT
    assert looked(state, 2 + LOOKS[0], GOOD, fair).metrics[Metric.ERROR_RATE].safety == passed
    state = looked(state, 3 + LOOKS[0], fair, fair, stage=2)
    assert (state.looks, state.stage_minute) == (0, 3 + LOOKS[0])
    assert state.metrics[Metric.ERROR_RATE].safety == pytest.approx(passed)


def test_advance__target_users_at_the_margin__do_not_pass() -> None:
    fair = UserCounts(errors={0: 60, 50: 40, 100: 20}, unanswered={0: 60, 50: 40, 100: 20})
    worse = UserCounts(errors={0: 40, 50: 30, 100: 50}, unanswered={0: 40, 50: 30, 100: 50})
    state = at_stage_of(50)

    for look in LOOKS:
        state = looked(state, 1 + look, worse, fair)

    assert state.looks == len(LOOKS)
    assert state.metrics[Metric.ERROR_RATE].safety < PASS_AT


def test_advance__little_known_of_the_baseline__looks_at_no_rate() -> None:
    state = advance(start(weights=(50, 100), sticky=True), MinuteCounts(1, 1, 50, arm(40, 1), arm(40, 1)))
    few = UserCounts(errors={100: 5})

    assert not_worse(state, Metric.ERROR_RATE, UserCounts(errors={0: 5}), few) == 0


def test_advance__formula_3__looks_at_nobody() -> None:
    old = replace(start(weights=(50, 100), sticky=True), formula=3)
    state = after_minutes(old, 3, arm(400, 8), arm(400, 8))

    assert looked(state, 1 + LOOKS[2], GOOD, GOOD).looks == 0
