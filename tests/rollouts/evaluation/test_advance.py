"""The state of an evaluation from minute to minute."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

import pytest

from rollouts.evaluation import (
    ArmCounts,
    Metric,
    MinuteCounts,
    Policy,
    State,
    UserCounts,
    advance,
    assess,
    at_stage,
    figures,
    initial_state,
    replay,
)
from rollouts.evaluation.blocks import MIN_REQUESTS
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.policy import EXACT, RATES
from rollouts.evaluation.state import Served
from rollouts.evaluation.statistics.clusters import ClusterSums
from rollouts.evaluation.statistics.evidence import ODDS, odds_factors
from rollouts.evaluation.statistics.margin import margin_odds
from rollouts.evaluation.terms import Status
from rollouts.evaluation.users import MIN_USERS
from tests.rollouts.evaluation.minutes import USUAL_COST, USUAL_MS, after_minutes, arm, start

STAGES = (10, 50, 100)


def stored_minute(value: MinuteCounts) -> MinuteCounts:
    # Databases store the members of an object in their own order.
    return from_json(MinuteCounts, json.loads(json.dumps(to_json(value), sort_keys=True)))


def some_arm(rng: Random, requests: int, *, sticky: bool) -> ArmCounts:
    errors = sum(rng.random() < 0.1 for _ in range(requests))
    hung = sum(rng.random() < 0.1 for _ in range(requests - errors))
    answered = requests - errors - hung
    exact = {metric.value: sum(rng.random() < 0.05 for _ in range(answered)) for metric in EXACT}
    uncompared = rng.randint(0, 3)
    users = UserCounts(
        errors={rng.randint(0, 5): 1}, unanswered={0: 1}, contract={1: 1}, latency={rng.randint(200, 300): 1}
    )
    counted = arm(
        requests,
        errors,
        unanswered=errors + hung,
        ms=[rng.randint(50, 3000) for _ in range(answered)],
        usd=[f"0.00{rng.randint(1, 9)}" for _ in range(answered)],
        reasons={"provider_failed": errors, "client_left": hung},
        users=users if sticky else None,
        stopped=rng.randint(0, answered),
        uncompared=uncompared,
        uncompared_unanswered=rng.randint(0, uncompared),
        **exact,
    )
    read = {number: count for number, count in counted.latency.items() if rng.random() < 0.5}
    return replace(counted, latency_read=read)


def some_minutes(seed: int, *, sticky: bool) -> Iterator[MinuteCounts]:
    """Returns quiet and busy minutes of every stage, with late rows of the stages before."""
    rng = Random(seed)
    sums = ClusterSums(40, 90, 5, 9, 12, 5)
    for number in range(1, 60):
        stage = 1 + number // 20
        late = [stage - 1] if stage > 1 and number % 7 == 0 else []
        for at in [*late, stage]:
            most = rng.choice([0, 2, 12, 60])
            yield MinuteCounts(
                number,
                at,
                STAGES[at - 1],
                some_arm(rng, rng.randint(0, most), sticky=sticky),
                some_arm(rng, rng.randint(0, most), sticky=sticky),
                clusters={Metric.ERROR_RATE: sums} if sticky and number % 5 == 3 else {},
                target_clusters={Metric.ERROR_RATE: sums} if sticky and number % 10 == 3 else {},
                settling=number % 20 < 4,
            )


@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("learning", [False, True])
def test_advance__stored_and_read_after_every_minute__is_the_same_to_the_last_digit(
    sticky: bool, learning: bool
) -> None:
    state = initial_state(
        Policy(),
        latency={} if learning else USUAL_MS,
        cost={} if learning else USUAL_COST,
        weights=STAGES,
        sticky=sticky,
        usual_unanswered=(90, 1000),
    )
    minutes = list(some_minutes(4, sticky=sticky))
    unbroken = replay(state, minutes)

    for minute in minutes:
        state = advance(from_json(State, json.loads(json.dumps(to_json(state), sort_keys=True))), stored_minute(minute))

    assert state == unbroken
    assert to_json(state) == to_json(unbroken)
    assert len(json.dumps(to_json(state))) < 40_000
    assert 0 < state.together.worse.bit_count() < state.together.blocks


@pytest.mark.parametrize("minute", [2, 3])
def test_advance__minute_that_was_counted__is_refused(minute: int) -> None:
    state = after_minutes(start(), 3, arm(5), arm(5))

    with pytest.raises(ValueError, match=f"minute {minute} of stage 1 does not follow 3 of 1"):
        advance(state, MinuteCounts(minute, 1, 50, arm(5), arm(5)))


def test_advance__stage_that_there_is_not__is_refused() -> None:
    with pytest.raises(ValueError, match="there is no stage 4: the rollout has 3"):
        advance(start(weights=STAGES), MinuteCounts(1, 4, 50, arm(5), arm(5)))


def test_initial_state__no_stages__is_refused() -> None:
    with pytest.raises(ValueError, match="weights"):
        initial_state(Policy(), latency={}, cost={}, weights=(), sticky=False)


def test_advance__few_requests__wait_for_their_block_and_count_as_one() -> None:
    """A minute with an empty arm shows no difference between the arms by itself."""
    before = start()
    state = replay(before, [MinuteCounts(number, 1, 50, arm(0), arm(5)) for number in range(1, 6)])
    assert state.metrics is before.metrics
    assert state.baseline.requests == 25

    state = advance(state, MinuteCounts(6, 1, 50, arm(5, 4), arm(0)))

    together = odds_factors(events=4, drawn=5, all_events=4, total=30, odds=ODDS)
    expected = [math.log(0.5) + factor for factor in together]
    assert state.metrics[Metric.ERROR_RATE].worse == pytest.approx(expected)
    assert state.block.empty


def test_advance__next_stage__closes_the_block_of_the_one_before() -> None:
    state = after_minutes(start(), 1, arm(4, 3), arm(10))
    assert state.metrics[Metric.ERROR_RATE].evidence == 0

    state = advance(state, MinuteCounts(2, 2, 5, arm(1), arm(1)))

    alone = odds_factors(events=3, drawn=4, all_events=3, total=14, odds=ODDS)
    expected = math.log(0.5 + 0.5 * math.fsum(map(math.exp, alone)) / len(ODDS))
    assert state.metrics[Metric.ERROR_RATE].evidence == pytest.approx(expected)
    assert (state.stage, state.stage_target, state.block.target.requests) == (2, Served(1), 1)


def test_advance__late_rows_of_an_earlier_stage__are_a_block_of_their_own() -> None:
    state = after_minutes(after_minutes(start(), 1, arm(10), arm(30)), 1, arm(2), arm(2), stage=2)
    before = state.metrics[Metric.UNANSWERED].worse

    state = advance(state, MinuteCounts(3, 1, 50, arm(3, 3), arm(3)))

    late = odds_factors(events=3, drawn=3, all_events=3, total=6, odds=ODDS)
    after = state.metrics[Metric.UNANSWERED].worse
    assert after == pytest.approx([log + factor for log, factor in zip(before, late, strict=True)])
    assert (state.stage, state.last_stage, state.block.target.requests) == (2, 1, 2)
    assert state.stage_target == Served(2)
    assert advance(state, MinuteCounts(3, 2, 5, arm(1), arm(1))).stage_target == Served(3)


def test_advance__margin__is_that_of_the_blocks_before() -> None:
    """The margin must not know the requests it is applied to."""
    known = after_minutes(start(), 10, arm(0), arm(30, 2))
    margin = margin_odds(errors=20 * 280 / 300, requests=280)
    assert margin is not None

    state = after_minutes(after_minutes(known, 1, arm(5, 1), arm(10, 6)), 1, arm(10, 1), arm(10, 5))

    [expected] = odds_factors(events=2, drawn=15, all_events=13, total=35, odds=(margin,))
    assert state.metrics[Metric.ERROR_RATE].safe[0] == -expected


def test_advance__cache_hits_alone__change_no_evidence() -> None:
    before = after_minutes(start(), 3, arm(20, 2), arm(20))

    after = after_minutes(before, 1, arm(0, units=30), arm(0, units=25))

    assert after.metrics is before.metrics
    assert after.sample_ratio.target == before.sample_ratio.target + 30


def test_advance__requests_that_nobody_answers_for__are_unanswered_and_no_errors() -> None:
    """Examples are a 404 for the version's model, or a variable that the version needs."""
    gone = arm(10, 0, unanswered=10, reasons={"model_not_found": 10})
    state = after_minutes(start(), 5, replace(gone, judged=0), arm(30))

    assert assess(state).metrics[Metric.UNANSWERED].status is Status.FAILING
    assert assess(state).metrics[Metric.ERROR_RATE].status is Status.INCONCLUSIVE
    assert state.target.reasons == {"model_not_found": 50}
    assert figures(state, Metric.UNANSWERED).target == 1


def test_advance__harm_that_begins_late__is_caught_sooner_than_without_the_processes_of_later_stages() -> None:
    well, ill, base = arm(15, 0), arm(15, 2), arm(15, 0)

    def blocks_until_failing(weights: Sequence[int]) -> int:
        state = after_minutes(start(weights=weights), 60, arm(15, 1), arm(15, 1))
        state = after_minutes(state, 60, well, arm(15, 1))
        for count in range(1, 400):
            state = after_minutes(state, 1, ill, base, stage=2)
            if assess(state).metrics[Metric.ERROR_RATE].status is Status.FAILING:
                return count
        raise AssertionError("it is never caught")

    assert blocks_until_failing((50, 50)) < blocks_until_failing((50, 100))


def test_advance__no_baseline_beside_it__finds_no_fault() -> None:
    state = after_minutes(start(), 50, arm(30, 9, ms=(9000,)), arm(0), weight=100)

    assert all(state.metrics[metric].evidence == 0 for metric in Metric)


def test_advance__no_history__learns_from_the_first_blocks_without_judging_them() -> None:
    state = initial_state(Policy(), latency={}, cost={}, weights=(50, 100), sticky=False)
    minute = (arm(15, ms=(3000,) * 15), arm(15, ms=(100,) * 15))

    learning = after_minutes(state, 4, *minute)
    judging = after_minutes(learning, 1, *minute)

    assert learning.latency.reference is not None
    assert learning.metrics[Metric.LATENCY_AVERAGE].evidence == 0
    assert judging.metrics[Metric.LATENCY_AVERAGE].evidence != 0
    assert judging.latency == learning.latency
    assert state.cost.reference is None


def sticky_minute(number: int, requests: int = MIN_REQUESTS, **arguments: object) -> MinuteCounts:
    return MinuteCounts(number, 1, 50, arm(requests, 5), arm(requests, 1), **arguments)  # type: ignore[arg-type]


def test_advance__sticky__weighs_a_block_by_what_was_known_before_it() -> None:
    sums = ClusterSums(100, 2000, 10, 60, 200, 10)
    unknown = advance(start(sticky=True), sticky_minute(1, clusters={Metric.ERROR_RATE: sums}))
    assert unknown.metrics[Metric.ERROR_RATE].evidence == 0

    known = advance(unknown, sticky_minute(2, clusters={Metric.ERROR_RATE: replace(sums, total_squared=500.0)}))

    design = unknown.metrics[Metric.ERROR_RATE].design
    assert design is not None
    assert design > 1
    factors = odds_factors(events=5, drawn=30, all_events=6, total=60, odds=ODDS)
    expected = [math.log(0.5) + factor / design for factor in factors]
    assert known.metrics[Metric.ERROR_RATE].worse == pytest.approx(expected)
    assert known.metrics[Metric.ERROR_RATE].design != design


def test_advance__sticky__knows_clustering_from_both_arms() -> None:
    even, uneven = ClusterSums(100, 2000, 10, 11, 100, 10), ClusterSums(100, 2000, 10, 100, 300, 10)
    one = advance(start(sticky=True), sticky_minute(1, clusters={Metric.ERROR_RATE: even}))
    both = advance(
        start(sticky=True),
        sticky_minute(1, clusters={Metric.ERROR_RATE: even}, target_clusters={Metric.ERROR_RATE: uneven}),
    )

    assert (both.metrics[Metric.ERROR_RATE].design or 0) > (one.metrics[Metric.ERROR_RATE].design or 0)


def test_advance__sticky_requests_that_cluster__fail_only_when_their_users_agree() -> None:
    sums = {Metric.ERROR_RATE: ClusterSums(100, 2000, 10, 60, 200, 10)}
    state = advance(start(sticky=True), sticky_minute(1, clusters=sums))
    state = replay(state, [sticky_minute(number) for number in range(2, 60)])
    undecided = assess(state).metrics[Metric.ERROR_RATE]
    assert (undecided.status, undecided.users_undecided) == (Status.INCONCLUSIVE, True)

    bad, good = UserCounts(errors={5: 4, 1: 3}), UserCounts(errors={0: 8})
    for number in range(60, 62):
        users = replace(arm(5), users=bad), replace(arm(5), users=good)
        state = advance(state, MinuteCounts(number, 1, 50, *users))

    agreed = assess(state).metrics[Metric.ERROR_RATE]
    assert (agreed.status, agreed.users_undecided) == (Status.FAILING, False)


def test_advance__sticky_users__wait_for_their_block() -> None:
    users = replace(arm(0), users=UserCounts(errors={5: 1})), replace(arm(0), users=UserCounts(errors={0: 1}))
    state = start(sticky=True)
    for number in range(1, 1 + MIN_USERS // 2):
        state = advance(state, MinuteCounts(number, 1, 50, *users))
        held = state.metrics[Metric.ERROR_RATE].users
        assert held is not None
        assert held.evidence == 0

    state = advance(state, MinuteCounts(MIN_USERS, 1, 50, *users))

    found = state.metrics[Metric.ERROR_RATE].users
    assert found is not None
    assert found.evidence > 0
    assert state.new_users.target == UserCounts()


def test_at_stage__not_seen_yet__has_served_nothing_and_keeps_its_evidence() -> None:
    state = after_minutes(start(), 5, arm(20, 10), arm(20))

    later = at_stage(state, 2)

    assert (later.stage_requests, later.stage_baseline) == (0, Served())
    assert assess(later) == assess(state)
    assert at_stage(state, 1) is state


# The requests of a stage are given; every choice of those that are the target's is enumerated, stage by stage.
_EVENTS = (
    ("fails", "well", "fails", "contract"),
    ("contract", "well", "truncated"),
    ("fails", "contract", "well", "stopped"),
)


@cache
def _choices(stage: int) -> tuple[tuple[ArmCounts, ArmCounts], ...]:
    events = _EVENTS[stage]
    found = []
    for drawn in (1, 2):
        for chosen in combinations(range(len(events)), drawn):
            own = [events[one] for one in chosen]
            theirs = [events[one] for one in range(len(events)) if one not in chosen]
            found.append((_arm_of(own), _arm_of(theirs)))
    return tuple(found)


def _arm_of(events: Sequence[str]) -> ArmCounts:
    counted: dict[str, Any] = {name: events.count(name) for name in ("contract", "truncated", "stopped")}
    return arm(len(events), events.count("fails"), units=0, **counted)


@pytest.mark.parametrize("late", [False, True])
def test_evidence__every_choice_of_labels_over_stages__has_mean_1(late: bool) -> None:
    """The whole course of a rollout, with blocks closed by a change of stage, processes begun late, and late rows."""
    weights = (10, 50, 75, 100)
    sums, count = dict.fromkeys(RATES, 0.0), 0.0
    for first in _choices(0):
        for second in _choices(1):
            for third in _choices(2):
                state = advance(start(weights=weights), MinuteCounts(1, 1, 10, *first))
                state = advance(state, MinuteCounts(2, 2, 50, *second))
                state = advance(state, MinuteCounts(3, 1 if late else 3, 10 if late else 75, *third))
                state = advance(state, MinuteCounts(4, 4, 100, arm(0), arm(0)))
                # A coin decides how many requests are drawn; given the number, each choice is equally likely.
                chance = math.prod(
                    1 / math.comb(len(events), arms[0].requests)
                    for events, arms in zip(_EVENTS, (first, second, third), strict=True)
                )
                count += chance
                for metric in sums:
                    sums[metric] += chance * math.exp(state.metrics[metric].evidence)

    for total in sums.values():
        assert total / count == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("design", [1.0, 1.7, 6.0])
def test_factors__divided_by_what_is_known_of_clustering__have_mean_at_most_1(design: float) -> None:
    for all_events in range(9):
        for drawn in range(9):
            chances = [
                math.comb(all_events, events) * math.comb(8 - all_events, drawn - events) / math.comb(8, drawn)
                for events in range(drawn + 1)
            ]
            logs = [
                odds_factors(events=events, drawn=drawn, all_events=all_events, total=8, odds=ODDS)
                for events in range(drawn + 1)
            ]
            for by_odds in zip(*logs, strict=True):
                mean = math.fsum(
                    chance * math.exp(log / design) for chance, log in zip(chances, by_odds, strict=True) if chance
                )
                assert mean < 1 + 1e-9


def test_advance__outage_of_both_arms__is_no_evidence_of_safety() -> None:
    well, gone = (arm(200, 8), arm(200, 4)), (arm(200, 200), arm(200, 200))
    before = after_minutes(start(), 10, *well)
    through = after_minutes(before, 10, *gone)
    half = after_minutes(before, 1, arm(200, 100), arm(200, 100))

    assert through.metrics[Metric.ERROR_RATE].safe == before.metrics[Metric.ERROR_RATE].safe
    assert half.metrics[Metric.ERROR_RATE].safety <= before.metrics[Metric.ERROR_RATE].safety
    # Nor does it change the margin of the minutes after it.
    ended, usual = after_minutes(through, 10, *well), after_minutes(before, 10, *well)
    assert ended.metrics[Metric.ERROR_RATE].safe == pytest.approx(usual.metrics[Metric.ERROR_RATE].safe)
