"""One user's share of a block: capped, and the same whatever arm the user is in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation import (
    Action,
    ArmCounts,
    Metric,
    MinuteCounts,
    MinuteUsers,
    State,
    advance,
    assess,
    from_json,
    to_json,
)
from rollouts.evaluation.factors import judged
from rollouts.evaluation.one_user import block_design, excess, joined, joined_by_user
from rollouts.evaluation.statistics.clusters import ClusterSums
from rollouts.evaluation.statistics.evidence import ODDS, odds_factors
from tests.rollouts.evaluation.minutes import start

ERRORS = Metric.ERROR_RATE
User = tuple[int, int]
"""The requests of a user and the events among them."""


def users_of(users: Mapping[int, User]) -> MinuteUsers:
    columns = list(users.values())
    sums = ClusterSums(
        requests=sum(number for number, _ in columns),
        requests_squared=sum(number**2 for number, _ in columns),
        total=sum(events for _, events in columns),
        total_squared=sum(events**2 for _, events in columns),
        cross=sum(number * events for number, events in columns),
        values_squared=sum(events for _, events in columns),
    )
    return MinuteUsers(sums, {bucket: events for bucket, (_, events) in users.items() if events})


def arm_of(users: Mapping[int, User]) -> ArmCounts:
    found = users_of(users)
    number, events = int(found.sums.requests), int(found.sums.total)
    return ArmCounts(
        requests=number,
        unanswered=events,
        judged=number,
        errors=events,
        units=len(users),
        by_user={ERRORS: found, Metric.UNANSWERED: found},
    )


def arms(users: list[User], chosen: Iterable[int]) -> tuple[ArmCounts, ArmCounts]:
    """Returns the target of the chosen users, and the baseline of the others."""
    mine = set(chosen)
    numbered = dict(enumerate(users))
    return (
        arm_of({number: user for number, user in numbered.items() if number in mine}),
        arm_of({number: user for number, user in numbered.items() if number not in mine}),
    )


def subsets(number: int) -> Iterable[tuple[int, ...]]:
    return (chosen for size in range(number + 1) for chosen in combinations(range(number), size))


USERS = st.lists(
    st.integers(1, 6).flatmap(lambda number: st.tuples(st.just(number), st.integers(0, number))),
    min_size=2,
    max_size=8,
)


@pytest.mark.parametrize(
    ("target", "baseline", "over"),
    [
        ({}, {}, (0, 0)),
        ({1: (1, 1)}, {}, (0, 0)),
        ({1: (5, 2)}, {}, (1, 0)),
        ({1: (5, 4)}, {2: (3, 1)}, (3, 0)),
        ({1: (9, 6)}, {2: (3, 2), 3: (1, 1)}, (3, 0)),
        ({1: (9, 5)}, {2: (9, 5)}, (2, 2)),
        (dict.fromkeys(range(40), (1, 1)), {50: (9, 9)}, (0, 0)),
    ],
    ids=["nobody", "one event", "two of one user", "a third of five", "a third of nine", "both arms", "an outage"],
)
def test_excess__events_of_users__those_above_a_third(
    target: Mapping[int, User], baseline: Mapping[int, User], over: tuple[int, int]
) -> None:
    assert excess(arm_of(target), arm_of(baseline), ERRORS) == over
    assert excess(arm_of(baseline), arm_of(target), ERRORS) == over[::-1]


@given(users=USERS)
def test_excess_and_design__every_choice_of_target_users__depend_on_no_label(users: list[User]) -> None:
    """The events that are left, and the design, are the same however the users are shared out."""
    everybody = excess(*arms(users, ()), ERRORS)[1]
    design = block_design(*arms(users, ()), ERRORS)
    single = [excess(*arms(users, [one]), ERRORS)[0] for one in range(len(users))]

    for chosen in subsets(len(users)):
        target, baseline = arms(users, chosen)
        own, theirs = excess(target, baseline, ERRORS)
        assert own + theirs == everybody
        assert own == sum(single[one] for one in chosen)
        assert 0 <= own <= target.errors
        assert block_design(target, baseline, ERRORS) == design


def factors(target: ArmCounts, baseline: ArmCounts) -> list[float]:
    """Returns the factors of a block by odds, as the evidence has them."""
    own, theirs = excess(target, baseline, ERRORS)
    logs = odds_factors(
        events=target.errors - own,
        drawn=target.judged,
        all_events=target.errors + baseline.errors - own - theirs,
        total=target.judged + baseline.judged,
        odds=ODDS,
    )
    return [math.exp(log / block_design(target, baseline, ERRORS)) for log in logs]


def mean_factors(users: list[User], share: float) -> list[float]:
    """Returns the means of the factors over all choices of users, each of whom is in the target with this probability.
    A block without an arm says nothing."""
    means = [0.0] * len(ODDS)
    for labels in product((False, True), repeat=len(users)):
        target, baseline = arms(users, [one for one, label in enumerate(labels) if label])
        chance = math.prod(share if label else 1 - share for label in labels)
        found = factors(target, baseline) if target.judged and baseline.judged else [1.0] * len(ODDS)
        means = [mean + chance * factor for mean, factor in zip(means, found, strict=True)]
    return means


@given(events=st.lists(st.integers(0, 1), min_size=2, max_size=9), share=st.sampled_from([0.1, 0.3, 0.5]))
def test_factors__users_of_one_request__have_mean_1(events: list[int], share: float) -> None:
    users = [(1, event) for event in events]

    assert max(mean_factors(users, share)) <= 1 + 1e-9


def test_factors__users_of_many_requests__have_a_mean_of_about_1() -> None:
    """Labels of users are fewer than labels of requests, so without cap and design the means reach a thousand."""
    rng, means = Random(4), []
    for _ in range(60):
        users = []
        for _ in range(rng.randint(3, 8)):
            number, rate = rng.choice([1, 1, 1, 2, 3, 6]), rng.choice([0, 0, 0.1, 1])
            users.append((number, sum(rng.random() < rate for _ in range(number))))
        means.append(max(mean_factors(users, rng.choice([0.1, 0.3, 0.5]))))

    assert sum(means) / len(means) <= 1.0
    assert max(means) <= 1.05


def test_block_design__requests_of_one_user_each__is_1() -> None:
    target, baseline = arms([(1, 1), (1, 0), (1, 1), (1, 0), (1, 0), (1, 0)], [0, 1])

    assert block_design(target, baseline, ERRORS) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("users", "design"),
    [([], 1.0), ([(5, 0), (6, 0)], 1.0), ([(5, 5)], 1.0), ([(6, 3)], 6.0)],
    ids=["nobody", "no event", "nothing but events", "one user alone"],
)
def test_block_design__nothing_varies_or_one_user_alone__is_finite(users: list[User], design: float) -> None:
    assert block_design(*arms(users, []), ERRORS) == design


def test_block_design__one_user_fails_always__is_large() -> None:
    others = [(1, int(number == 7)) for number in range(50)]
    target, baseline = arms([(5, 5), *others], range(4))

    assert block_design(target, baseline, ERRORS) > 2


def test_joined__minutes_of_a_block__add_events_by_user() -> None:
    first, second = users_of({7: (2, 2), 9: (1, 0)}), users_of({7: (1, 1), 3: (4, 2)})

    both = joined(first, second)

    assert both.events == {3: 2, 7: 3}
    # In the sums the user counts anew.
    assert both.sums == ClusterSums(8, 22, 5, 9, 13, 5)
    assert list(joined_by_user({ERRORS: first}, {Metric.COST: second})) == sorted([ERRORS, Metric.COST])
    assert joined_by_user({}, {ERRORS: first}) == {ERRORS: first}


def calm(minute: int) -> MinuteCounts:
    """Returns a minute of 60 requests by as many users, of whom one of the baseline's fails."""
    users = {number: (1, int(number == 20)) for number in range(60)}
    return with_clusters(minute, {n: users[n] for n in range(6)}, {n: users[n] for n in range(6, 60)})


def with_clusters(minute: int, target: Mapping[int, User], baseline: Mapping[int, User]) -> MinuteCounts:
    own, theirs = arm_of(target), arm_of(baseline)
    clusters = {metric: users.sums for metric, users in theirs.by_user.items()}
    target_clusters = {metric: users.sums for metric, users in own.by_user.items()}
    return MinuteCounts(minute, 1, 10, own, theirs, clusters, target_clusters)


def breaking(minute: int, failing: Mapping[int, User]) -> MinuteCounts:
    """Returns a minute in which these users of the target fail."""
    others = {number: (1, int(number == 20)) for number in range(8, 60)}
    return with_clusters(minute, {0: (1, 0), 1: (1, 0), **failing}, others)


def after_failures(failing: Mapping[int, User]) -> State:
    state = start(sticky=True)
    for minute in range(1, 11):
        state = advance(state, calm(minute))
    for minute in range(11, 16):
        # The sums over all users do not tell the failing ones yet.
        state = advance(state, replace(breaking(minute, failing), clusters={}, target_clusters={}))
    return state


def test_advance__client_of_one_user_breaks__does_not_decide() -> None:
    state = after_failures({100: (6, 6)})

    assert state.metrics[ERRORS].next_design == pytest.approx(1.0, abs=0.2)
    assert state.metrics[ERRORS].block_design > 2
    assert not assess(state).failing(Action.ROLL_BACK, state)


def test_advance__as_many_users_fail_once__rolls_back() -> None:
    state = after_failures({100 + number: (1, 1) for number in range(6)})

    assert state.metrics[ERRORS].block_design == pytest.approx(1.0, abs=0.2)
    assert ERRORS in assess(state).failing(Action.ROLL_BACK, state)


def test_assess__latest_block_of_few_users__requests_alone_are_not_believed() -> None:
    state = after_failures({100 + number: (1, 1) for number in range(6)})

    state = advance(state, replace(breaking(16, {100: (6, 6)}), clusters={}, target_clusters={}))

    assert not assess(state).failing(Action.ROLL_BACK, state)
    assert assess(state).metrics[ERRORS].users_undecided


def test_judged__capped_events__safety_counts_them_all() -> None:
    """The events of one user never make a target look safer than as many of other users."""
    state = after_failures({})
    one, many = (breaking(16, failing) for failing in ({100: (6, 6)}, {100 + n: (1, 1) for n in range(6)}))
    capped, full = (
        judged(state, minute.target, minute.baseline, state.baseline)[ERRORS].safe for minute in (one, many)
    )

    assert capped == full


def test_state__open_block_of_sticky_allocation__is_stored_with_its_users() -> None:
    state = advance(start(sticky=True), with_clusters(1, {1: (3, 2)}, {2: (4, 0), 3: (1, 1)}))
    assert state.block.target.by_user[ERRORS].events == {1: 2}

    stored = json.loads(json.dumps(to_json(state)))

    assert from_json(State, stored) == state
    following = with_clusters(2, {1: (30, 2)}, {2: (4, 0)})
    assert advance(from_json(State, stored), following) == advance(state, following)


def test_advance__minute_settles__users_of_rates_alone_are_kept() -> None:
    minute = with_clusters(1, {1: (3, 2)}, {2: (4, 0), 3: (1, 1)})
    slow = {**minute.target.by_user, Metric.LATENCY_P95: users_of({1: (3, 3)})}

    state = advance(start(sticky=True), replace(minute, settling=True, target=replace(minute.target, by_user=slow)))

    assert set(state.block.target.by_user) == {ERRORS, Metric.UNANSWERED}
