"""The design effect of few users, against its definition over random users."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from rollouts.evaluation.quality.blocks import cluster_sums
from rollouts.evaluation.quality.clustering import NO_USERS, design_of_both, design_of_tasks, number_of_users
from rollouts.evaluation.statistics.clustering import Variation, design_of_arms

USUAL = Variation()


def test_number_of_users__counts_by_their_tasks() -> None:
    assert number_of_users(NO_USERS) == 0
    assert number_of_users(cluster_sums([[1.0] * 4, [0.0] * 4])) == pytest.approx(2)
    assert number_of_users(cluster_sums([[1.0] * 98, [0.0], [0.0]])) == pytest.approx(1.04, abs=0.01)


def test_design__users_who_always_get_the_same__is_their_number_of_tasks() -> None:
    half = [[1.0] * 10] * 50 + [[0.0] * 10] * 50

    assert design_of_tasks(cluster_sums(half), cluster_sums(half), USUAL) == pytest.approx(10, rel=0.01)


def test_design__independent_tasks_nobody_or_all_alike__is_1() -> None:
    rng = random.Random(1)
    independent = cluster_sums([[float(rng.random() < 0.8) for _ in range(10)] for _ in range(2000)])

    assert design_of_tasks(independent, independent, USUAL) == pytest.approx(1, abs=0.1)
    assert design_of_tasks(NO_USERS, NO_USERS, USUAL) == 1
    assert design_of_tasks(cluster_sums([[1.0] * 5]), cluster_sums([[1.0]]), USUAL) == 1


def test_design__few_users_who_are_alike_each__is_not_too_small_on_average() -> None:
    """Three users of the target have 20 tasks each, of which half of the variance is theirs: it is 1 + 0.5 x 19. Around
    their own mean they spread less, which `design_of_arms` takes for independence."""
    rng = random.Random(2)

    def user() -> list[float]:
        own = rng.gauss(0, 1)
        return [own + rng.gauss(0, 1) for _ in range(20)]

    samples = [cluster_sums([user() for _ in range(3)]) for _ in range(3000)]

    assert fmean(design_of_tasks(NO_USERS, one, USUAL) for one in samples) > 9
    assert fmean(design_of_arms(NO_USERS, one, USUAL) for one in samples) < 8.5


def test_design_of_both__arms_whose_users_differ__takes_the_difference_for_theirs() -> None:
    """All users of the target get bad answers, and all others good ones: each arm by itself does not vary."""
    target, baseline = cluster_sums([[0.0] * 10] * 20), cluster_sums([[1.0]] * 200)

    assert design_of_tasks(baseline, target, USUAL) == 1
    assert (design_of_both(baseline, target, USUAL) or 0) > 4


def test_design_of_both__few_users_of_an_arm__is_not_known() -> None:
    few, many = cluster_sums([[0.0, 1.0]] * 9), cluster_sums([[0.0, 1.0]] * 30)

    assert design_of_both(few, many, USUAL) is None
    assert design_of_both(many, few, USUAL) is None
    assert design_of_both(many, many, USUAL) == 1
