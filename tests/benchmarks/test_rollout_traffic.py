from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.rollouts.crowd import Ledger, Valued, by_minute
from benchmarks.rollouts.runs import traffic
from benchmarks.rollouts.worlds import Fault, Questions, Users, Weather, World
from rollouts.evaluation import ArmCounts, ClusterSums, Metric, MinuteCounts, MinuteUsers
from rollouts.evaluation.statistics.grid import value_of
from tests.tables.cases import tabled

MINUTES = 1440


def minutes(world: World, seed: str = "one", weight: int = 50, count: int = MINUTES) -> list[MinuteCounts]:
    source = traffic(world, seed)
    return [one for number in range(1, count + 1) for one in source.minute(number, 1, weight)]


def arms(counts: Iterable[MinuteCounts]) -> tuple[list[ArmCounts], list[ArmCounts]]:
    found = list(counts)
    return [one.target for one in found], [one.baseline for one in found]


def total(arm: Iterable[ArmCounts], name: str) -> int:
    return sum(getattr(one, name) for one in arm)


def share(arm: list[ArmCounts], name: str = "errors", of: str = "judged") -> float:
    return total(arm, name) / total(arm, of)


def mean_latency(arm: list[ArmCounts]) -> float:
    return total(arm, "latency_ms") / sum(sum(one.latency.values()) for one in arm)


def close(one: float, other: float, requests: float, deviations: float = 5.0) -> bool:
    """Returns whether chance alone explains the difference of two shares of `requests` each."""
    rate = (one + other) / 2
    return abs(one - other) <= deviations * math.sqrt(2 * rate * (1 - rate) / requests)


@pytest.mark.parametrize("values", [False, True])
def test_traffic__random_allocation__has_the_rates_of_the_world(values: bool) -> None:
    world = World(rate=100, errors=0.1, target_errors=0.3, values=values)

    target, baseline = arms(minutes(world, weight=25))

    everything = total(target, "requests") + total(baseline, "requests")
    assert everything == pytest.approx(100 * MINUTES, rel=0.02)
    assert total(target, "requests") == pytest.approx(everything * 0.25, rel=0.03)
    assert share(baseline) == pytest.approx(0.1, rel=0.03)
    assert share(target) == pytest.approx(0.3, rel=0.03)
    assert total(target, "unanswered") == total(target, "errors")
    assert total(target, "units") == total(target, "requests")


HARMLESS = {
    "plain": World(),
    "storm": World(values=True, weather=Weather(spells=True, outages=True, bursts=True, drift=9)),
    "autocorrelated": World(values=True, weather=Weather(autocorrelation=0.98)),
    "Pareto": World(values=True, tail=1.3),
    "retries": World(errors=0.05, retries=3),
    "clients leave": World(cancelled=0.1),
    "sticky": World(errors=0.05, users=Users(2000, icc=0.05, activity=math.inf)),
}


@pytest.mark.parametrize("world", HARMLESS.values(), ids=HARMLESS.keys())
def test_traffic__harmless_target__arms_are_alike(world: World) -> None:
    target, baseline = arms(minutes(world))

    requests = min(total(target, "requests"), total(baseline, "requests"))
    # The rates of users vary besides: with 43 requests each an ICC of 0.05 counts a request for a third.
    effective = requests / 3 if world.users else requests
    for name in ("errors", "unanswered"):
        assert close(share(target, name, "requests"), share(baseline, name, "requests"), effective)
    if world.values and math.isinf(world.tail):
        assert mean_latency(target) == pytest.approx(mean_latency(baseline), rel=0.06)


def test_traffic__worse_target__takes_and_costs_as_much_more() -> None:
    target, baseline = arms(minutes(World(values=True, latency_factor=1.5, cost_factor=2.0)))

    assert mean_latency(target) / mean_latency(baseline) == pytest.approx(1.5, rel=0.06)
    costs = [float(sum(one.cost_usd for one in arm)) / total(arm, "requests") for arm in (target, baseline)]
    assert costs[0] / costs[1] == pytest.approx(2.0, rel=0.06)


def test_traffic__values__are_log_normal_around_the_median_and_sum_up() -> None:
    target, baseline = arms(minutes(World(values=True, errors=0.0)))

    # The mean of a log-normal value of standard deviation 1 is the median times e^0.5.
    assert mean_latency(baseline) == pytest.approx(800 * math.exp(0.5), rel=0.03)
    by_bins = sum(value_of(number) * count for one in target for number, count in one.latency.items())
    assert by_bins == pytest.approx(total(target, "latency_ms"), rel=0.01)


def test_traffic__harm_from_a_later_stage__begins_there() -> None:
    source = traffic(World(target_errors=0.5, harm_from=3), "late")
    early = [source.minute(number, 2, 50)[0].target for number in range(1, 200)]
    late = [source.minute(number, 3, 50)[0].target for number in range(200, 400)]

    assert share(early) == pytest.approx(0.02, abs=0.01)
    assert share(late) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("users", [None, Users(100, icc=0.1)])
def test_traffic__stage_changes_within_the_hour__goes_on_with_the_new_weight(users: Users | None) -> None:
    source = traffic(World(users=users, retries=1), "change")
    before = [source.minute(number, 1, 1)[0] for number in range(1, 31)]
    after = [source.minute(number, 2, 75)[0] for number in range(31, 91)]

    assert [(one.minute, one.stage, one.weight) for one in after] == [(number, 2, 75) for number in range(31, 91)]
    assert total([one.target for one in before], "requests") < total([one.baseline for one in before], "requests")
    assert total([one.target for one in after], "requests") > total([one.baseline for one in after], "requests")


def test_traffic__outages__fail_everything_of_both_arms() -> None:
    counts = minutes(World(weather=Weather(outages=True)))

    down = [one for one in counts if one.target.requests and one.target.errors == one.target.requests]
    assert len(down) > 15
    assert all(one.baseline.errors == one.baseline.requests for one in down)


def test_traffic__bursts__are_eight_times_the_traffic() -> None:
    counts = [one.target.requests + one.baseline.requests for one in minutes(World(weather=Weather(bursts=True)))]

    # Day and night vary by half, so nothing but a burst reaches three times the mean.
    bursts = [one for one in counts if one > 180]
    assert 20 <= len(bursts) <= 120


@tabled
def test_traffic__broken_target__is_unanswered_for_its_reason(fault: Fault, errors: bool) -> None:
    target, baseline = arms(minutes(World(errors=0.0, fault=fault, fault_share=0.5)))

    assert share(target, "unanswered", "requests") == pytest.approx(0.5, abs=0.02)
    assert total(baseline, "unanswered") == 0
    reasons = sum(one.reasons.get(fault.value, 0) for one in target)
    assert reasons == total(target, "unanswered")
    assert (total(target, "errors") > 0) == errors
    assert total(target, "judged") <= total(target, "units")


def test_traffic__hanging_and_reported__counts_after_a_minute_and_the_error_after_three() -> None:
    world = World(errors=0.0, fault=Fault.HANGING, fault_share=1.0)
    counts = minutes(world, count=10)

    assert [one.target.requests > 0 for one in counts[:3]] == [False, True, True]
    assert [one.target.errors > 0 for one in counts[:5]] == [False, False, False, True, True]
    # A request that hangs from the first minute on is recorded in the fourth.
    assert counts[3].target.errors == counts[1].target.unanswered


def test_traffic__hanging_and_not_reported__counts_when_it_is_recorded() -> None:
    world = World(errors=0.0, fault=Fault.HANGING, fault_share=1.0, open_requests_reported=False)
    counts = minutes(world, count=10)

    assert [one.target.requests > 0 for one in counts[:5]] == [False, False, False, True, True]
    assert all(one.target.requests == one.target.errors for one in counts)


def test_traffic__hanging_over_a_change_of_stage__is_a_cell_of_the_earlier_stage() -> None:
    source = traffic(World(errors=0.0, fault=Fault.HANGING, fault_share=1.0), "late")
    for number in range(1, 6):
        source.minute(number, 1, 50)

    cells = source.minute(6, 2, 75)

    assert [(one.minute, one.stage, one.weight) for one in cells] == [(6, 1, 50), (6, 2, 75)]
    assert cells[0].target.unanswered > 0
    assert cells[0].baseline == ArmCounts()


def test_traffic__response_cache__hits_are_units_and_nothing_else() -> None:
    world = World(errors=0.04, questions=Questions())
    target, baseline = arms(minutes(replace(world, compared_alike=False), weight=5))

    hits = 1 - share(baseline, "requests", "units")
    assert hits > 0.6
    # The target's cache sees fewer questions.
    assert 1 - share(target, "requests", "units") < hits - 0.1
    assert share(baseline) == pytest.approx(0.04, rel=0.1)
    assert sum(one.left_out.get("cache_hit", 0) for one in baseline) == total(baseline, "units") - total(
        baseline, "requests"
    )
    # Compared alike, the same requests are those that neither cache could answer.
    for arm, before in zip(arms(minutes(world, weight=5)), (target, baseline), strict=True):
        assert total(arm, "requests") + total(arm, "uncompared") == total(before, "requests")
        assert total(arm, "uncompared") > 0


def test_traffic__clients_leave__half_of_them_unanswered() -> None:
    target, _ = arms(minutes(World(errors=0.0, cancelled=0.1)))

    assert share(target, "unanswered", "requests") == pytest.approx(0.05, abs=0.004)
    assert 1 - share(target, "judged", "requests") == pytest.approx(0.1, abs=0.006)


def test_traffic__retries__add_what_fails_again() -> None:
    once, thrice = (minutes(World(errors=0.1, retries=retries)) for retries in (0, 3))

    # One request in ten is sent again, half of these once more, and half of those a third time: 0.1 (1 + 1/2 + 1/4).
    before, after = (
        total(target, "requests") + total(baseline, "requests") for target, baseline in (arms(once), arms(thrice))
    )
    assert after / before == pytest.approx(1.175, rel=0.02)


def test_traffic__users__keep_their_arm_and_are_units_once() -> None:
    world = World(users=Users(300, icc=0.1))
    source = traffic(world, "users")
    counts = [source.minute(number, 1, 5)[0] for number in range(1, 200)]
    later = [source.minute(number, 2, 50)[0] for number in range(200, 1000)]

    units = [total(arm, "units") for arm in arms([*counts, *later])]
    assert 200 < sum(units) <= 300
    # A user who was in the target before the stage does not count in it, and nobody counts twice.
    counted = [sum(sum(one.users.errors.values()) for one in arm) for arm in arms(later)]
    assert 0 < sum(counted) <= 290
    assert all(0 <= bad <= 5 for one in later for bad in one.target.users.errors)


def test_traffic__broken_users__always_fail() -> None:
    world = World(errors=0.0, users=Users(100, broken=0.1, activity=math.inf))
    target, baseline = arms(minutes(world))

    assert (total(target, "errors") + total(baseline, "errors")) / (
        total(target, "requests") + total(baseline, "requests")
    ) == pytest.approx(0.1, rel=0.05)
    assert {bad for one in [*target, *baseline] for bad in one.users.errors} == {0, 5}


def test_clusters__minute_by_minute__are_the_sums_over_users() -> None:
    """The sums are drawn an hour ahead and cut by a change of stage, and still are those of the whole baseline."""
    world = World(errors=0.2, users=Users(40, icc=0.3, activity=math.inf))
    source = traffic(world, "clusters")
    counts = [source.minute(number, 1 + (number > 25), 10 if number <= 25 else 50)[0] for number in range(1, 200)]

    last: ClusterSums = counts[-1].clusters[Metric.ERROR_RATE]

    assert last.requests == total([one.baseline for one in counts], "judged")
    assert last.total == last.values_squared == total([one.baseline for one in counts], "errors")
    # The bound is the inequality of Cauchy and Schwarz over 40 users.
    assert last.requests_squared >= last.requests**2 / 40
    assert last.cross**2 <= last.requests_squared * last.total_squared


def test_by_minute__requests_of_a_few_users__are_added_up_by_hand() -> None:
    minute, user = np.array([0, 0, 0, 0, 1]), np.array([1, 0, 1, 1, 1])
    value = np.array([1.0, 0.0, 1.0, 0.0, 1.0])

    found = by_minute(Valued(minute, user, user == 0, value), 2, is_mean=False)

    assert [one.sums for one in found] == [
        ClusterSums(3, 9, 2, 4, 6, 2),
        ClusterSums(1, 1, 0, 0, 0, 0),
        ClusterSums(1, 1, 1, 1, 1, 1),
        ClusterSums(),
    ]
    assert [one.events for one in found] == [{1: 2}, {}, {1: 1}, {}]
    nobody = by_minute(Valued(minute[:0], user[:0], user[:0] == 0, value[:0]), 1, is_mean=True)
    assert nobody == [MinuteUsers(), MinuteUsers()]


def test_traffic__heavy_user__is_in_the_target_at_10_percent_and_fails_for_15_minutes() -> None:
    world = World(errors=0.0, users=Users(300, heavy=(0.06, 0.06)))
    counts = minutes(world, weight=10, count=200)

    failing = [one.minute for one in counts if one.target.errors]
    assert set(failing) <= set(range(100, 115))
    assert len(failing) > 10
    assert not any(one.baseline.errors for one in counts)
    share_of_all = sum(one.target.errors for one in counts) / sum(
        one.target.judged + one.baseline.judged for one in counts if 100 <= one.minute < 115
    )
    assert share_of_all == pytest.approx(0.06, abs=0.02)
    # The events of each minute are those of one user.
    assert {len(one.target.by_user[Metric.ERROR_RATE].events) for one in counts if one.target.errors} == {1}


def test_ledger__requests_of_a_few_users__are_added_up_by_hand() -> None:
    ledger = Ledger(np.array([5.0, 60.0]))
    ledger.begin(1, 10)
    # The first user is in the target, the second in the baseline and fails in its second and third request.
    minute, user = np.array([0, 0, 0, 1, 1]), np.array([1, 0, 1, 1, 0])
    value = np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    look = ledger.look("error_rate", Valued(minute, user, user == 0, value), 2)

    assert look.baseline == [ClusterSums(2, 4, 1, 1, 2, 1), ClusterSums(3, 9, 2, 4, 6, 2)]
    assert look.target == [ClusterSums(1, 1, 1, 1, 1, 1), ClusterSums(2, 4, 1, 1, 2, 1)]
    assert len(look.complete.user) == 0


def test_ledger__fifth_request_of_the_stage__counts_its_user_once() -> None:
    ledger = Ledger(np.array([5.0, 60.0, 2.0]))
    ledger.begin(1, 3)
    ledger.begin(2, 10)
    minute, user = np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6)
    value = (user == 1) * 1.0

    look = ledger.look("error_rate", Valued(minute, user, user != 1, value), 6)

    # The last user was in the target before.
    assert look.complete.user.tolist() == [0, 1]
    assert look.complete.minute.tolist() == [4, 4]
    assert look.complete.value.tolist() == [0, 5]
    ledger.settle(3)
    again = ledger.look("error_rate", Valued(minute, user, user != 1, value), 6)
    assert again.complete.minute.tolist() == [1, 1]


def test_traffic__records_lost__never_arrive() -> None:
    whole, rest = (
        total(arms(minutes(replace(World(), lost=lost)))[0], "requests") / total(arms(minutes(World()))[1], "requests")
        for lost in (0.0, 0.2)
    )

    assert rest / whole == pytest.approx(0.8, rel=0.03)
