"""The verdicts: when an automatic rollout promotes, rolls back or waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollouts.evaluation import (
    Action,
    ArmCounts,
    Decision,
    Metric,
    Policy,
    Reason,
    State,
    Status,
    Verdict,
    assess,
    decide,
    explain,
    figures,
)
from rollouts.evaluation.state import Served
from rollouts.evaluation.statistics.strata import AnsweredRates, Strata
from rollouts.states import DEFAULT_STAGES, Stage
from tests.rollouts.evaluation.minutes import after_minutes, arm, start

FULL = (100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)
SLOW = tuple(2 * value for value in FULL)
EQUAL = arm(10, ms=FULL, usd=("0.001",) * 10)
DEAR = arm(10, ms=FULL, usd=("0.003",) * 10)
STAGE = {stage.weight: stage for stage in DEFAULT_STAGES}


def run(target: ArmCounts, *, minutes: int = 200, policy: Policy | None = None) -> State:
    return after_minutes(start(policy), minutes, target, EQUAL)


def verdict(state: State, weight: int, elapsed: float = 1000) -> Verdict:
    return decide(state, STAGE[weight], elapsed_minutes=elapsed)


def test_assess__equal_arms_for_long__passes_in_everything() -> None:
    assessment = assess(run(EQUAL))

    assert assessment.status is Status.PASSING
    assert {one.status for one in assessment.metrics.values()} == {Status.PASSING}
    assert {one.metric for one in assessment.metrics.values() if not one.judged} == {Metric.STOPPED}
    assert all(one.p_value == 1 for one in assessment.metrics.values())


def test_assess__nothing_yet__is_inconclusive() -> None:
    assessment = assess(start())

    assert assessment.status is Status.INCONCLUSIVE
    assert assessment.minutes == 0


@pytest.mark.parametrize(
    ("target", "metric"),
    [
        (arm(10, 4, ms=FULL[:6], usd=("0.001",) * 6), Metric.ERROR_RATE),
        (arm(10, ms=SLOW, usd=("0.001",) * 10), Metric.LATENCY_P95),
        (arm(10, ms=tuple(int(value * 1.2) for value in FULL)), Metric.LATENCY_AVERAGE),
        (DEAR, Metric.COST),
    ],
)
def test_assess__target_worse__fails_in_that_metric(target: ArmCounts, metric: Metric) -> None:
    assessment = assess(run(target))

    assert assessment.status is Status.FAILING
    assert assessment.metrics[metric].status is Status.FAILING
    assert assessment.metrics[metric].p_value < 0.01


def test_assess__certain_but_small_difference__does_not_fail() -> None:
    state = run(arm(10, ms=tuple(int(value * 1.09) for value in FULL), usd=("0.00109",) * 10), minutes=2000)

    assert state.metrics[Metric.LATENCY_AVERAGE].evidence > 10
    assert assess(state).status is Status.PASSING


def test_assess__two_errors_of_two__are_too_few_and_three_are_not() -> None:
    two, three = (after_minutes(start(), minutes, arm(1, 1), arm(999, 0)) for minutes in (2, 3))

    assert assess(two).status is Status.INCONCLUSIVE
    assert assess(three).status is Status.FAILING


def test_assess__fewer_than_20_target_requests__only_errors_fail() -> None:
    slow = after_minutes(start(), 19, arm(1, ms=(900_000,)), arm(99, ms=FULL * 9))

    assert slow.metrics[Metric.LATENCY_AVERAGE].evidence > 10
    assert assess(slow).status is Status.INCONCLUSIVE
    assert assess(after_minutes(slow, 1, arm(1, ms=(900_000,)), arm(99, ms=FULL * 9))).status is Status.FAILING


def test_assess__cost_within_the_allowance__is_no_fault() -> None:
    target = arm(10, ms=FULL, usd=("0.0019",) * 10)

    strict, generous = (assess(run(target, policy=Policy(cost_allowance=allowed))) for allowed in (0.25, 1.0))

    assert strict.metrics[Metric.COST].status is Status.FAILING
    assert generous.metrics[Metric.COST].status is Status.PASSING


@pytest.mark.parametrize("price", ["", "0"])
def test_assess__no_prices_or_free_models__do_not_hold_a_rollout_for_ever(price: str) -> None:
    both = arm(10, ms=FULL, usd=(price,) * 10 if price else ())

    assessment = assess(after_minutes(start(), 200, both, both))

    assert not assessment.metrics[Metric.COST].judged
    assert assessment.status is Status.PASSING


def test_assess__only_the_baseline_has_prices__stays_undecided() -> None:
    assessment = assess(run(arm(10, ms=FULL)))

    assert assessment.metrics[Metric.COST].judged
    assert assessment.status is Status.INCONCLUSIVE


def test_assess__ignored_metric__is_shown_and_decides_nothing() -> None:
    state = run(DEAR, policy=Policy(cost_per_request=Action.IGNORE))

    assert assess(state).metrics[Metric.COST].status is Status.FAILING
    assert not assess(state).metrics[Metric.COST].judged
    assert assess(state).status is Status.PASSING
    assert explain(state, Metric.COST).startswith("Ignored by this rollout: $0.003")


def test_decide__errors__rolls_back_before_any_minimum() -> None:
    found = verdict(run(arm(10, 9, ms=(100,)), minutes=2), 1, elapsed=2)

    assert (found.decision, found.reason) == (Decision.ROLL_BACK, Reason.METRIC_FAILING)
    assert found.explanation.startswith("Unanswered: 90.0 % against 0 %; Errors: 90.0 % against 0 %.")


@pytest.mark.parametrize("weight", [stage.weight for stage in DEFAULT_STAGES if stage.weight < 100])
def test_decide__hold_metric_fails__waits_at_every_weight(weight: int) -> None:
    found = verdict(run(DEAR), weight)

    assert (found.decision, found.reason) == (Decision.WAIT, Reason.METRIC_FAILING)
    assert found.explanation.startswith("Cost of a request: $0.003")


def test_decide__hold_metric_set_to_roll_back__rolls_back() -> None:
    state = run(DEAR, policy=Policy(cost_per_request=Action.ROLL_BACK))

    assert verdict(state, 1).decision is Decision.ROLL_BACK


@pytest.mark.parametrize(
    ("elapsed", "requests", "reason"),
    [(29.9, 1000, Reason.MINIMUM_DURATION), (30, 19, Reason.MINIMUM_REQUESTS), (30, 20, Reason.NO_FAILURE)],
)
def test_decide__first_stage__needs_both_minima(elapsed: float, requests: int, reason: Reason) -> None:
    state = replace(run(EQUAL, minutes=3), stage_target=Served(requests))

    assert verdict(state, 1, elapsed).reason is reason


@pytest.mark.parametrize("weight", [50, 75])
def test_decide__inconclusive_from_50_percent__waits_and_is_overdue_after_a_day(weight: int) -> None:
    state = replace(run(EQUAL, minutes=30), stage_target=Served(400))
    assert assess(state).status is Status.INCONCLUSIVE

    soon, later = verdict(state, weight, 120), verdict(state, weight, 120 + 24 * 60)

    assert (soon.decision, soon.reason, soon.overdue) == (Decision.WAIT, Reason.INCONCLUSIVE, False)
    assert (later.decision, later.reason, later.overdue) == (Decision.WAIT, Reason.INCONCLUSIVE, True)
    assert soon.explanation.startswith("Not certain yet: ")


@pytest.mark.parametrize("weight", [1, 5, 10, 25])
def test_decide__inconclusive_below_50_percent__promotes(weight: int) -> None:
    state = replace(run(EQUAL, minutes=30), stage_target=Served(400))

    assert (verdict(state, weight).decision, verdict(state, weight).reason) == (Decision.PROMOTE, Reason.NO_FAILURE)


@pytest.mark.parametrize("weight", [1, 50, 75])
def test_decide__passing__promotes(weight: int) -> None:
    state = replace(run(EQUAL), stage_target=Served(400))

    assert (verdict(state, weight).decision, verdict(state, weight).reason) == (Decision.PROMOTE, Reason.PASSING)


def test_decide__all_traffic__completes_after_its_hour_without_a_verdict() -> None:
    state = after_minutes(run(EQUAL, minutes=10), 60, EQUAL, arm(0), stage=2, weight=100)

    assert verdict(state, 100, 59).reason is Reason.MINIMUM_DURATION
    assert (verdict(state, 100, 60).decision, verdict(state, 100, 60).reason) == (Decision.PROMOTE, Reason.NO_CONTROL)


def test_decide__records_of_the_target_missing__waits_whatever_the_weight() -> None:
    state = replace(run(arm(10, units=6, ms=FULL, usd=("0.001",) * 10)), stage_target=Served(400))

    found = verdict(state, 25)

    assert assess(state).status is Status.INCONCLUSIVE
    assert (found.decision, found.reason) == (Decision.WAIT, Reason.SAMPLE_RATIO)
    assert "but gets 50 % of the traffic: records are missing" in found.explanation


def test_decide__no_traffic_at_all__waits_for_requests() -> None:
    assert verdict(start(), 1).reason is Reason.MINIMUM_REQUESTS
    assert verdict(start(), 1, 30 + 24 * 60).overdue


def test_decide__no_minima_and_no_data__never_promotes_from_50_percent() -> None:
    assert decide(start(), Stage(50, 0, 0), elapsed_minutes=0).decision is Decision.WAIT


def test_explain__every_state__is_a_sentence_without_surprises() -> None:
    for state in (start(), run(EQUAL), run(DEAR, minutes=5), run(arm(10, 10))):
        for metric in Metric:
            assert explain(state, metric).endswith(".")
            assert "None" not in explain(state, metric)


def served(target: Served, baseline: Served, *, sticky: bool = False, policy: Policy | None = None) -> State:
    state = start(policy, sticky=sticky)
    return replace(state, stage=1, stage_target=target, stage_baseline=baseline)


def test_decide__most_of_the_minimum_unanswered__rolls_back_at_once() -> None:
    found = verdict(served(Served(20, 20), Served(2000, 40)), 1, elapsed=5)

    assert (found.decision, found.reason) == (Decision.ROLL_BACK, Reason.MINIMUM_UNANSWERED)
    assert found.explanation.startswith(
        "20 of the target's 20 requests of this stage went unanswered, and 40 of the baseline's 2,000."
    )


@pytest.mark.parametrize(
    "state",
    [
        served(Served(20, 20), Served(29, 0)),
        served(Served(20, 20), Served(2000, 1500)),
        served(Served(20, 20), Served(2000, 40), sticky=True),
        served(Served(20, 20), Served(2000, 40), policy=Policy(unanswered=Action.HOLD)),
    ],
    ids=["nobody to compare with", "both arms", "sticky", "holds"],
)
def test_decide__most_of_the_minimum_unanswered_and_no_proof__holds(state: State) -> None:
    found = verdict(state, 1)

    assert (found.decision, found.reason) == (Decision.WAIT, Reason.MINIMUM_UNANSWERED)
    assert found.explanation.startswith("20 of the target's 20 requests of this stage went unanswered")


def test_decide__some_of_the_minimum_unanswered__waits_and_says_how_many() -> None:
    found = verdict(served(Served(22, 4), Served(2000, 40)), 1)

    assert (found.decision, found.reason) == (Decision.WAIT, Reason.MINIMUM_REQUESTS)
    assert found.explanation == (
        "The target answered 18 of 20 requests of this stage; 4 more went unanswered."
        " Wait for more requests, or promote by hand."
    )


def test_decide__baseline_answered_by_the_cache_alone__holds_a_target_that_leaves_requests_unanswered() -> None:
    """No block compares anything, so no evidence can grow, and its absence must not promote."""
    found = verdict(served(Served(60, 30), Served(0, 0)), 1)

    assert (found.decision, found.reason) == (Decision.WAIT, Reason.NO_COMPARISON)
    assert "Too few requests came at one time to compare the versions." in found.explanation
    assert verdict(served(Served(60, 1), Served(0, 0)), 1).reason is Reason.NO_FAILURE


def test_decide__open_requests_count_after_those_beside_them__holds_before_their_block_closes() -> None:
    answered = after_minutes(start(), 1, arm(22), arm(43), weight=25)
    state = after_minutes(answered, 1, arm(15, 0, unanswered=15), arm(0), weight=25)

    found = verdict(state, 1)

    assert (found.decision, found.reason) == (Decision.WAIT, Reason.NO_COMPARISON)
    assert "15 of the target's 37 requests of this stage went unanswered" in found.explanation
    assert verdict(answered, 1).reason is Reason.NO_FAILURE
    assert verdict(replace(state, policy=Policy(unanswered=Action.IGNORE)), 1).reason is Reason.NO_FAILURE


def test_decide__target_behind_the_baselines_warm_cache__meets_its_minimum_by_what_it_answered() -> None:
    """Most questions are in the baseline's cache, so that few requests are compared."""
    target = replace(arm(2, ms=(300,) * 2), uncompared=8, uncompared_unanswered=1)
    state = after_minutes(start(), 30, target, arm(2, ms=(300,) * 2))

    assert state.stage_target == Served(300, 30, 240, 30)
    assert (state.stage_target.answered, state.stage_target.compared) == (270, Served(60, 0))
    assert state.metrics[Metric.UNANSWERED].evidence <= 0
    assert verdict(state, 1).reason is Reason.NO_COMPARISON
    assert verdict(after_minutes(start(), 30, replace(target, uncompared_unanswered=0), arm(2)), 1).reason is (
        Reason.NO_FAILURE
    )


@pytest.mark.parametrize("beside", [0, 500])
def test_decide__no_request_of_the_baseline_is_compared__holds_a_target_that_leaves_some_unanswered(
    beside: int,
) -> None:
    target, baseline = Served(60, 3), Served(beside, 0, beside, 0)

    assert verdict(served(target, baseline), 1).reason is Reason.NO_COMPARISON


@pytest.mark.parametrize(("compared", "decision"), [(20, Decision.ROLL_BACK), (19, Decision.WAIT)])
def test_decide__most_of_the_minimum_unanswered__rolls_back_by_compared_requests_alone(
    compared: int, decision: Decision
) -> None:
    target = Served(100, 90, 100 - compared, 90 - compared)

    found = verdict(served(target, Served(2000, 40)), 1)

    assert (found.decision, found.reason) == (decision, Reason.MINIMUM_UNANSWERED)


@pytest.mark.parametrize(("elapsed", "shown"), [(0.97, "0 of 30"), (29.99, "29 of 30")])
def test_decide__part_of_a_minute__does_not_count_as_a_whole_one(elapsed: float, shown: str) -> None:
    assert f"{shown} minutes" in verdict(run(EQUAL, minutes=1), 1, elapsed).explanation


def test_decide__requests_cluster_and_users_do_not_agree__holds_and_says_why() -> None:
    one = start(sticky=True)
    loud = replace(one.metrics[Metric.ERROR_RATE], evidence=9.0, design=4.0, next_design=4.0)
    loud = replace(loud, strata=Strata(100, 20, 2), answered_rates=AnsweredRates(95, 19, 1.9))
    state = replace(
        one,
        stage=1,
        metrics={**one.metrics, Metric.ERROR_RATE: loud},
        stage_target=Served(400, 20),
        stage_baseline=Served(400, 2),
        target=replace(one.target, requests=400, judged=400, errors=20),
        baseline=replace(one.baseline, requests=400, judged=400, errors=2),
    )

    found = verdict(state, 25)

    assert (found.decision, found.reason) == (Decision.WAIT, Reason.USERS_UNDECIDED)
    assert "a few users make most of the difference" in found.explanation


def test_assess__cost_at_its_allowance__passes() -> None:
    """A target between the limits neither fails nor passes, and waits."""
    state = run(arm(10, ms=FULL, usd=("0.00122",) * 10), minutes=1000)

    assert assess(state).metrics[Metric.COST].status is Status.PASSING


@pytest.mark.parametrize(
    ("target", "sticky", "reason"),
    [
        (Served(60, 15), True, Reason.USERS_UNDECIDED),
        (Served(60, 15), False, Reason.NO_COMPARISON),
        (Served(60, 9), True, Reason.NO_FAILURE),
        (Served(200, 19), True, Reason.NO_FAILURE),
    ],
)
def test_decide__few_sticky_users_fare_badly__get_no_company(target: Served, sticky: bool, reason: Reason) -> None:
    found = verdict(served(target, Served(2000, 40), sticky=sticky), 1)

    assert (found.decision is Decision.WAIT, found.reason) == (reason is not Reason.NO_FAILURE, reason)
    if found.reason is Reason.USERS_UNDECIDED:
        assert "That may be the version or a few of its users." in found.explanation


def test_decide__both_arms_fail_alike_in_spells__still_finds_a_worse_target() -> None:
    state = start()
    for _ in range(10):
        # Everything fails during a spell; between spells the target fails three times as often.
        state = after_minutes(state, 6, arm(50, 50), arm(50, 50))
        state = after_minutes(state, 10, arm(50, 6), arm(50, 2))

    errors, figure = assess(state).metrics[Metric.ERROR_RATE], figures(state, Metric.ERROR_RATE)

    assert figure.ratio is not None
    assert figure.ratio < 1.25
    assert errors.status is Status.FAILING


def test_assess__nothing_but_failures_in_both_arms__is_no_difference() -> None:
    state = after_minutes(start(), 10, arm(50, 50), arm(50, 50))

    assert assess(state).metrics[Metric.ERROR_RATE].status is Status.INCONCLUSIVE
