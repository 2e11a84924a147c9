"""The design effect of users under sticky allocation, in calm hours and beside outages of both arms."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from rollouts.evaluation import Metric, MinuteCounts, State, advance
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.statistics.clustering import Variation, design_of_arms
from rollouts.evaluation.statistics.clusters import ClusterSums, spread_of
from rollouts.evaluation.statistics.grid import bin_of, value_of
from rollouts.evaluation.statistics.strata import moments
from tests.rollouts.evaluation.minutes import arm, start


def simulated(rng: Random, *, users: int, blocks: int, unlike: float, outages: bool) -> tuple[ClusterSums, Variation]:
    """Returns the sums and the variation of requests of users whose error rates are 2 %, and in `unlike` of them 30
    %. During outages, every eighth block, all requests fail."""
    rates = [0.3 if rng.random() < unlike else 0.02 for _ in range(users)]
    requests, failures = [0] * users, [0] * users
    variation = Variation()
    for number in range(blocks):
        failed = 0
        for _ in range(30):
            user = rng.randrange(users)
            bad = (outages and number % 8 == 0) or rng.random() < rates[user]
            requests[user] += 1
            failures[user] += bad
            failed += bad
        variation = variation.with_block(30, failed, failed)
    sums = ClusterSums(
        requests=sum(requests),
        requests_squared=sum(count**2 for count in requests),
        total=sum(failures),
        total_squared=sum(count**2 for count in failures),
        cross=sum(one * other for one, other in zip(requests, failures, strict=True)),
        values_squared=sum(failures),
    )
    return sums, variation


def test_design__users_alike__is_about_1_with_outages_and_without() -> None:
    for outages in (False, True):
        sums, variation = simulated(Random(3), users=100, blocks=800, unlike=0.0, outages=outages)

        assert design_of_arms(sums, None, variation) < 1.6


def test_design__users_differ__is_as_large_beside_outages_as_in_calm_hours() -> None:
    calm = design_of_arms(*_arms(simulated(Random(5), users=100, blocks=800, unlike=0.1, outages=False)))
    stormy_sums, stormy = simulated(Random(5), users=100, blocks=800, unlike=0.1, outages=True)

    assert calm > 10
    assert 0.6 * calm < design_of_arms(stormy_sums, None, stormy) < 1.6 * calm
    # The variance of all hours together would hide most of the design effect.
    spread, expected = spread_of(stormy_sums)
    assert spread / expected < 0.6 * calm


def _arms(found: tuple[ClusterSums, Variation]) -> tuple[ClusterSums, None, Variation]:
    return found[0], None, found[1]


def test_variation__blocks_alike__share_is_1_without_bias() -> None:
    rng, variation = Random(7), Variation()
    for _ in range(4000):
        failed = sum(rng.random() < 0.1 for _ in range(5))
        variation = variation.with_block(5, failed, failed)

    assert variation.share_within == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(
    ("blocks", "share"),
    [
        ([], 1.0),
        ([(1, 1, 1)], 1.0),  # One request says nothing about the variance within a block.
        ([(30, 0, 0)], 1.0),
        ([(30, 30, 30), (30, 0, 0)], 1.0),  # Nothing varies within any block.
    ],
    ids=["none", "one request", "no failure", "all or nothing"],
)
def test_variation__nothing_varies_within_blocks__share_is_1(
    blocks: list[tuple[int, float, float]], share: float
) -> None:
    variation = Variation()
    for block in blocks:
        variation = variation.with_block(*block)

    assert variation.share_within == share


def test_variation__outage__share_is_that_of_the_hours_that_differ() -> None:
    variation = Variation().with_block(100, 100, 100).with_block(100, 2, 2)

    within, overall = 2 * 0.98 * 100 / 99, 102 - 102**2 / 200
    assert variation.share_within == pytest.approx(within / overall)


def test_moments__values_above_the_cap__are_cut() -> None:
    low, high = bin_of(100), bin_of(5000)

    number, total, squares = moments({high: 2, low: 3}, cap=1000.0)

    assert number == 5
    assert total == pytest.approx(3 * value_of(low) + 2000)
    assert squares == pytest.approx(3 * value_of(low) ** 2 + 2_000_000)


def sticky_state() -> State:
    state = start(sticky=True)
    for number in range(1, 6):
        failed = 40 if number == 3 else 1
        minute = MinuteCounts(
            minute=number, stage=1, weight=10, target=arm(4, 1), baseline=arm(40, failed, unanswered=failed)
        )
        state = advance(state, minute)
    return state


def test_advance__sticky__remembers_how_the_baseline_varied() -> None:
    variation = sticky_state().metrics[Metric.ERROR_RATE].variation

    assert variation.requests == 200
    assert variation.total == 44
    assert 0 < variation.share_within < 0.2


def test_advance__random_allocation__remembers_no_variation() -> None:
    state = advance(
        start(), MinuteCounts(minute=1, stage=1, weight=10, target=arm(4, 1), baseline=arm(40, 4, unanswered=4))
    )

    assert state.metrics[Metric.ERROR_RATE].variation == Variation()


def test_state__stored_before_the_variation_was_known__is_read() -> None:
    state = sticky_state()
    stored = to_json(state)
    for metric in stored["metrics"].values():
        del metric["variation"]

    read = from_json(State, stored)

    assert {metric: one.variation for metric, one in read.metrics.items()} == dict.fromkeys(Metric, Variation())
    assert read.metrics[Metric.COST] == replace(state.metrics[Metric.COST], variation=Variation())


def test_state__lacks_a_field_without_a_default__is_refused() -> None:
    stored = to_json(sticky_state())
    del stored["policy"]

    with pytest.raises(TypeError):
        from_json(State, stored)


def test_design__target_fails_users_unlike_the_baseline__counts_both_arms() -> None:
    even = ClusterSums(100, 1000, 10, 10, 100, 10)
    uneven = ClusterSums(100, 1000, 10, 100, 100, 10)

    assert design_of_arms(even, None, Variation()) == 1.0
    assert design_of_arms(even, uneven, Variation()) > 1.0
    assert math.isfinite(design_of_arms(ClusterSums(), None, Variation()))
