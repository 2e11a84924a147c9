"""The verdicts: when an automatic rollout promotes, rolls back or waits."""

from __future__ import annotations

from collections.abc import Callable
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


def served(target: Served, baseline: Served, *, sticky: bool = False, policy: Policy | None = None) -> State:
    state = start(policy, sticky=sticky)
    return replace(state, stage=1, stage_target=target, stage_baseline=baseline)


def counted(state: State, requests: int) -> State:
    return replace(state, stage_target=Served(requests))


ALL, MANY, NO_ONE = Served(20, 20), Served(2000, 40), Served()
DEARER = "Cost of a request: $0.003"
CLUSTERED = "That may be the version or a few of its users."
ALONE = "Too few requests came at one time to compare the versions."
LEFT = "20 of the target's 20 requests of this stage went unanswered"


@pytest.mark.parametrize(
    ("state", "weight", "elapsed", "reason", "decision", "text"),
    [
        (lambda: run(arm(10, 9, ms=(100,)), minutes=2), 1, 2, Reason.METRIC_FAILING, Decision.ROLL_BACK,
         "Unanswered: 90.0 % against 0 %; Errors: 90.0 % against 0 %."),
        *((lambda: run(DEAR), stage.weight, 1000, Reason.METRIC_FAILING, Decision.WAIT, DEARER)
          for stage in DEFAULT_STAGES if stage.weight < 100),
        (lambda: run(DEAR, policy=Policy(cost_per_request=Action.ROLL_BACK)), 1, 1000,
         Reason.METRIC_FAILING, Decision.ROLL_BACK, DEARER),
        # Both minima are needed, and a part of a minute does not count as a whole one.
        (lambda: counted(run(EQUAL, minutes=3), 1000), 1, 29.9, Reason.MINIMUM_DURATION, Decision.WAIT, "29 of 30 min"),
        (lambda: counted(run(EQUAL, minutes=3), 1000), 1, 0.97, Reason.MINIMUM_DURATION, Decision.WAIT, "0 of 30 min"),
        (lambda: counted(run(EQUAL, minutes=3), 19), 1, 30, Reason.MINIMUM_REQUESTS, Decision.WAIT, ""),
        (lambda: counted(run(EQUAL, minutes=3), 20), 1, 30, Reason.NO_FAILURE, Decision.PROMOTE, ""),
        *((lambda: counted(run(EQUAL, minutes=30), 400), weight, 1000, Reason.NO_FAILURE, Decision.PROMOTE, "")
          for weight in (1, 5, 10, 25)),
        *((lambda: counted(run(EQUAL), 400), weight, 1000, Reason.PASSING, Decision.PROMOTE, "")
          for weight in (1, 50, 75)),
        # Records of the target are missing.
        (lambda: counted(run(arm(10, units=6, ms=FULL, usd=("0.001",) * 10)), 400), 25, 1000, Reason.SAMPLE_RATIO,
         Decision.WAIT, "but gets 50 % of the traffic: records are missing"),
        # Most of the minimum goes unanswered.
        (lambda: served(ALL, MANY), 1, 5, Reason.MINIMUM_UNANSWERED, Decision.ROLL_BACK,
         f"{LEFT}, and 40 of the baseline's 2,000."),
        (lambda: served(ALL, Served(29)), 1, 1000, Reason.MINIMUM_UNANSWERED, Decision.WAIT, LEFT),
        (lambda: served(ALL, Served(2000, 1500)), 1, 1000, Reason.MINIMUM_UNANSWERED, Decision.WAIT, LEFT),
        (lambda: served(ALL, MANY, sticky=True), 1, 1000, Reason.MINIMUM_UNANSWERED, Decision.WAIT, LEFT),
        (lambda: served(ALL, MANY, policy=Policy(unanswered=Action.HOLD)), 1, 1000,
         Reason.MINIMUM_UNANSWERED, Decision.WAIT, LEFT),
        (lambda: served(Served(100, 90, 80, 70), MANY), 1, 1000, Reason.MINIMUM_UNANSWERED, Decision.ROLL_BACK, ""),
        (lambda: served(Served(100, 90, 81, 71), MANY), 1, 1000, Reason.MINIMUM_UNANSWERED, Decision.WAIT, ""),
        (lambda: served(Served(22, 4), MANY), 1, 1000, Reason.MINIMUM_REQUESTS, Decision.WAIT,
         "The target answered 18 of 20 requests of this stage; 4 more went unanswered."
         " Wait for more requests, or promote by hand."),
        # Nothing of the baseline is compared, so no evidence can grow, and its absence must not promote.
        (lambda: served(Served(60, 30), NO_ONE), 1, 1000, Reason.NO_COMPARISON, Decision.WAIT, ALONE),
        (lambda: served(Served(60, 1), NO_ONE), 1, 1000, Reason.NO_FAILURE, Decision.PROMOTE, ""),
        (lambda: served(Served(60, 3), NO_ONE), 1, 1000, Reason.NO_COMPARISON, Decision.WAIT, ALONE),
        (lambda: served(Served(60, 3), Served(500, 0, 500)), 1, 1000, Reason.NO_COMPARISON, Decision.WAIT, ALONE),
        # A few users who fare badly get no company.
        (lambda: served(Served(60, 15), MANY, sticky=True), 1, 1000, Reason.USERS_UNDECIDED, Decision.WAIT, CLUSTERED),
        (lambda: served(Served(60, 15), MANY), 1, 1000, Reason.NO_COMPARISON, Decision.WAIT, ""),
        (lambda: served(Served(60, 9), MANY, sticky=True), 1, 1000, Reason.NO_FAILURE, Decision.PROMOTE, ""),
        (lambda: served(Served(200, 19), MANY, sticky=True), 1, 1000, Reason.NO_FAILURE, Decision.PROMOTE, ""),
    ],
)  # fmt: skip
def test_decide__each_case__decision_reason_and_words(
    state: Callable[[], State], weight: int, elapsed: float, reason: Reason, decision: Decision, text: str
) -> None:
    found = verdict(state(), weight, elapsed)

    assert (found.reason, found.decision) == (reason, decision)
    assert text in found.explanation


@pytest.mark.parametrize("weight", [50, 75])
def test_decide__inconclusive_from_50_percent__waits_and_is_overdue_after_a_day(weight: int) -> None:
    state = replace(run(EQUAL, minutes=30), stage_target=Served(400))
    assert assess(state).status is Status.INCONCLUSIVE

    soon, later = verdict(state, weight, 120), verdict(state, weight, 120 + 24 * 60)

    assert (soon.decision, soon.reason, soon.overdue) == (Decision.WAIT, Reason.INCONCLUSIVE, False)
    assert (later.decision, later.reason, later.overdue) == (Decision.WAIT, Reason.INCONCLUSIVE, True)
    assert soon.explanation.startswith("Not certain yet: ")


def test_decide__all_traffic__completes_after_its_hour_without_a_verdict() -> None:
    state = after_minutes(run(EQUAL, minutes=10), 60, EQUAL, arm(0), stage=2, weight=100)

    assert verdict(state, 100, 59).reason is Reason.MINIMUM_DURATION
    assert (verdict(state, 100, 60).decision, verdict(state, 100, 60).reason) == (Decision.PROMOTE, Reason.NO_CONTROL)


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


def test_decide__both_arms_fail_alike_in_spells__still_finds_a_worse_target() -> None:
    state = start()
    for _ in range(10):
        # Everything fails during a spell; between spells the target fails three times as often.
        state = after_minutes(state, 6, arm(50, 50), arm(50, 50))
        state = after_minutes(state, 10, arm(50, 6), arm(50, 2))

    errors, figure = assess(state).metrics[Metric.ERROR_RATE], figures(state, Metric.ERROR_RATE)

    assert (figure.target, figure.baseline) == pytest.approx((0.12, 0.04))
    assert errors.status is Status.FAILING


def test_assess__nothing_but_failures_in_both_arms__is_no_difference() -> None:
    state = after_minutes(start(), 10, arm(50, 50), arm(50, 50))

    assert assess(state).metrics[Metric.ERROR_RATE].status is Status.INCONCLUSIVE
