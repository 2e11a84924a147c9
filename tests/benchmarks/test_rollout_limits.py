from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.rollouts.counting import sums_before
from benchmarks.rollouts.limits import Spending, beyond_tokens, limited
from benchmarks.rollouts.runs import Plan, simulate, traffic
from benchmarks.rollouts.values import MEAN_COST
from benchmarks.rollouts.warmth import Prompts
from benchmarks.rollouts.worlds import (
    Budget,
    Questions,
    RateLimit,
    Signals,
    Users,
    Weather,
    World,
)
from rollouts.evaluation import ArmCounts, MinuteCounts
from tests.benchmarks.test_rollout_traffic import MINUTES, arms, mean_latency, minutes, share, total
from tests.tables.cases import tabled


def left_out(arm: list[ArmCounts], reason: str) -> int:
    return sum(one.left_out.get(reason, 0) for one in arm)


def test_sums_before__groups__add_up_in_order() -> None:
    assert sums_before(np.array([1, 2, 1, 1, 2]), np.array([1.0, 5, 2, 4, 1])).tolist() == [0, 0, 1, 3, 5]
    assert sums_before(np.array([], dtype=np.int64), np.array([])).tolist() == []


def test_spending__budget_used_up__refuses_until_the_next_period() -> None:
    spending = Spending(Budget(requests=2, minutes=10), units=2)
    minute, unit = np.array([0, 1, 2, 2, 5]), np.array([0, 0, 0, 1, 0])
    cost = np.full(5, MEAN_COST)

    assert spending.refused(1, minute, unit, cost).tolist() == [False, False, True, False, True]
    # Only the first of these minutes happened.
    spending.settle(1)
    assert spending.refused(2, minute, unit, cost).tolist() == [False, True, True, False, True]
    spending.settle(6)
    assert spending.refused(8, np.array([0, 1, 2]), np.array([0, 0, 0]), np.full(3, MEAN_COST)).tolist() == [
        True,
        True,
        False,
    ]


def test_limited__requests_of_a_unit__are_above_from_the_next_on() -> None:
    minute, unit = np.array([0, 0, 0, 0, 1]), np.array([3, 3, 1, 3, 3])

    assert limited(RateLimit(2), minute, unit).tolist() == [False, False, False, True, False]


def test_beyond_tokens__large_request__leaves_room_for_a_small_one() -> None:
    minute, tokens = np.array([0, 0, 0, 1]), np.array([2.0, 3.0, 1.0, 3.0])

    assert beyond_tokens(4.0, minute, tokens).tolist() == [False, True, False, False]


def test_prompts__five_minutes_without_a_request__are_cold() -> None:
    prompts, rng = Prompts(1), np.random.default_rng(1)
    target = np.array([True, False, False, True, True])

    cold = prompts.cold(rng, 1, np.array([0, 1, 8, 9, 9]), target)
    prompts.settle(2)
    again = prompts.cold(rng, 3, np.array([0, 9]), np.array([True, False]))

    assert cold.tolist() == [True, False, True, True, False]
    assert again.tolist() == [False, True]


@tabled
def test_budget__target_three_times_as_dear__is_refused_more(world: World) -> None:
    alike = arms(minutes(world, count=360))
    target, baseline = arms(minutes(replace(world, cost_factor=3.0), count=360))

    refused = [share(arm, "unanswered", "requests") for arm in (*alike, target, baseline)]
    assert all(0.01 < one < 0.35 for one in (refused[0], refused[1], refused[3]))
    assert refused[2] > refused[3] + 0.15
    assert sum(one.reasons.get("budget", 0) for one in target) == total(target, "unanswered")
    assert total(target, "errors") == 0


def test_budget__hours_before_the_rollout__are_the_usual_share() -> None:
    source = traffic(World(values=True, errors=0.02, users=Users(300, activity=3.0), budget=Budget(24, 60)), "one")

    unanswered, requests = source.usual_unanswered()

    assert 0.03 < unanswered / requests < 0.4


def test_usual_unanswered__outages__are_in_it() -> None:
    calm, outages = (traffic(World(weather=Weather(outages=out)), "one").usual_unanswered() for out in (False, True))

    assert calm[0] / calm[1] == pytest.approx(0.02, rel=0.01)
    assert outages[0] / outages[1] > 0.05


def test_rate_limit__requests_above_it__are_left_out() -> None:
    target, baseline = arms(minutes(World(errors=0.1, rate_limit=RateLimit(5, keys=20))))

    for arm in (target, baseline):
        above = left_out(arm, "requests_per_minute")
        assert above / total(arm, "units") > 0.02
        assert total(arm, "requests") + above == total(arm, "units")
        assert share(arm, "unanswered", "requests") == pytest.approx(0.1, rel=0.1)


def test_token_limit__target_of_three_times_the_tokens__is_of_both_arms() -> None:
    world = World(values=True, errors=0.0, weather=Weather(steady=True), token_limit=2.0)
    target, baseline = arms(minutes(replace(world, cost_factor=3.0), weight=75, count=200))
    usual = arms(minutes(world, weight=75, count=200))

    assert share(target, "unanswered", "requests") > 0.1
    assert share(baseline, "unanswered", "requests") > 0.05
    assert all(share(arm, "unanswered", "requests") < 0.001 for arm in usual)


def test_start_up__first_minutes_of_each_stage__are_three_times_slower() -> None:
    source = traffic(World(values=True, rate=600, start_up=3), "one")
    counts = [
        *(source.minute(number, 1, 50)[0] for number in range(1, 11)),
        *(source.minute(number, 2, 75)[0] for number in range(11, 21)),
    ]

    ratios = [mean_latency([one.target]) / mean_latency([one.baseline]) for one in counts]

    slow = [number for number, ratio in enumerate(ratios, 1) if ratio > 2]
    assert slow == [1, 2, 3, 11, 12, 13]


def test_settle_minutes__first_minutes_of_each_stage__are_settling() -> None:
    world, plan = World(rate=600), Plan(minutes=40)

    seen = _watched(world, plan)

    assert len(seen) == 40
    assert [stage for stage, settling in seen if settling] == [1] * 4 + [2] * 4
    assert not any(settling for _, settling in _watched(world, replace(plan, settles=False)))


def test_prompt_cache__few_requests__are_slower_and_dearer() -> None:
    world = World(values=True, rate=10, prompt_caches=1)

    target, baseline = arms(minutes(world, weight=1, count=5 * MINUTES))

    assert mean_latency(target) / mean_latency(baseline) > 1.3
    costs = [float(sum(one.cost_usd for one in arm)) / total(arm, "answered") for arm in (target, baseline)]
    assert costs[0] / costs[1] > 1.6


@pytest.mark.parametrize("users", [None, Users(200, icc=0.05)])
def test_signals__answers__have_them_as_often_as_the_world_says(users: Users | None) -> None:
    usual = Signals(contract=0.02, truncated=0.1, empty=0.01)
    world = World(errors=0.05, users=users, signals=usual, target_signals=replace(usual, contract=0.5))

    target, baseline = arms(minutes(world))

    assert total(target, "answered") == total(target, "judged") - total(target, "errors")
    assert share(target, "contract", "answered") == pytest.approx(0.5, rel=0.05)
    for name, expected in (("contract", 0.02), ("truncated", 0.1), ("fallback", 0.0), ("empty", 0.01)):
        assert share(baseline, name, "answered") == pytest.approx(expected, rel=0.1)
    if users:
        assert any(one.users.contract for one in target)


def test_fallbacks__spells__are_of_both_arms() -> None:
    target, baseline = arms(minutes(World(errors=0.0, weather=Weather(fallbacks=True))))

    down = [index for index, one in enumerate(target) if one.fallback]
    assert len(down) > 15
    assert all(arm[index].fallback == arm[index].answered for arm in (target, baseline) for index in down)


def test_clients_leave__after_output__are_stopped() -> None:
    target, _ = arms(minutes(World(errors=0.0, cancelled=0.1)))

    assert share(target, "stopped", "requests") == pytest.approx(0.05, abs=0.004)


def test_questions__popular_ones_slow__are_as_slow_in_both_arms_where_neither_cache_has_them() -> None:
    world = World(values=True, errors=0.0, questions=Questions(slower=0.25))

    alike = _latencies(minutes(world, weight=5, count=480))
    hits_only = _latencies(minutes(replace(world, compared_alike=False), weight=5, count=480))

    # The target's cache is cold, so that more of its requests are popular questions.
    assert hits_only > 1.15
    assert alike == pytest.approx(1.0, abs=0.1)


def _watched(world: World, plan: Plan) -> list[tuple[int, bool]]:
    seen: list[tuple[int, bool]] = []
    simulate(world, plan, "one", watch=lambda counts: seen.extend((one.stage, one.settling) for one in counts))
    return seen


def _latencies(counts: list[MinuteCounts]) -> float:
    target, baseline = arms(counts)
    return mean_latency(target) / mean_latency(baseline)
