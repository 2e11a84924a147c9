"""The exact signals: answers that break their schema, are cut off, come from another model or are empty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import pytest

from rollouts.evaluation import (
    ArmCounts,
    Decision,
    Metric,
    MinuteCounts,
    Policy,
    Reason,
    State,
    Status,
    UserCounts,
    advance,
    assess,
    decide,
    figures,
)
from rollouts.evaluation.counts import events_of
from rollouts.evaluation.factors import judged
from rollouts.evaluation.policy import ALPHA, EXACT
from rollouts.evaluation.state import ArmTotals, Served
from rollouts.states import DEFAULT_STAGES
from tests.rollouts.evaluation.minutes import after_minutes, arm, start
from tests.tables.cases import tabled

SHOWN = (*EXACT, Metric.STOPPED)
MAX_TOTAL = 6


def with_events(metric: Metric, requests: int, events: int, *, unanswered: int = 0) -> ArmCounts:
    counts: dict[str, Any] = {metric.value: events}
    return arm(requests, unanswered, units=0, **counts)


def choices(metric: Metric, *, unanswered: int, events: int, clean: int, drawn: int) -> Iterator[State]:
    """Returns the state after one block for each choice of the target's requests among so many of each outcome."""
    outcomes = ["unanswered"] * unanswered + ["event"] * events + ["clean"] * clean
    before = start()
    for chosen in combinations(range(len(outcomes)), drawn):
        arms = []
        for numbers in (chosen, set(range(len(outcomes))) - set(chosen)):
            found = [outcomes[number] for number in numbers]
            arms.append(with_events(metric, len(found), found.count("event"), unanswered=found.count("unanswered")))
        metrics = judged(before, arms[0], arms[1], ArmTotals())
        yield replace(before, metrics=metrics)


@pytest.mark.parametrize("metric", SHOWN)
def test_evidence__every_choice_of_the_targets_requests__has_mean_1(metric: Metric) -> None:
    """The answered requests of an arm are known only after the choice, so that unanswered ones are chosen with them."""
    first = math.log(0.5)
    for total in range(1, MAX_TOTAL + 1):
        for unanswered in range(min(total, 2) + 1):
            for events in range(total - unanswered + 1):
                for drawn in range(total + 1):
                    states = list(
                        choices(
                            metric,
                            unanswered=unanswered,
                            events=events,
                            clean=total - unanswered - events,
                            drawn=drawn,
                        )
                    )
                    for logs in zip(*(state.metrics[metric].worse for state in states), strict=True):
                        mean = math.fsum(math.exp(log - first) for log in logs) / len(states)
                        assert mean == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("metric", EXACT)
@pytest.mark.parametrize("rate", [0.01, 0.03, 0.5, 1.0])
def test_safety__rate_at_or_above_a_point__has_mean_at_most_1(metric: Metric, rate: float) -> None:
    """Beside a baseline without any event the margin is one point."""
    for requests in range(1, 9):
        mean = 0.0
        for events in range(requests + 1):
            chance = math.comb(requests, events) * rate**events * (1 - rate) ** (requests - events)
            metrics = judged(start(), with_events(metric, requests, events), arm(0), ArmTotals())
            mean += chance * math.exp(metrics[metric].safe[1])
        assert mean < 1 + 1e-9


def requests_until_failing(rng: Random, metric: Metric, *, per_minute: int, usual: float, broken: float) -> float:
    """Returns the target's requests in the first default stage until the metric fails."""
    state = start()
    for minute in range(1, 20_000):
        drawn = sum(rng.random() < DEFAULT_STAGES[0].weight / 100 for _ in range(per_minute))
        own, theirs = (
            sum(rng.random() < rate for _ in range(requests))
            for requests, rate in ((drawn, broken), (per_minute - drawn, usual))
        )
        arms = with_events(metric, drawn, own), with_events(metric, per_minute - drawn, theirs)
        state = advance(state, MinuteCounts(minute, 1, DEFAULT_STAGES[0].weight, *arms))
        if assess(state).metrics[metric].status is Status.FAILING:
            return state.target.requests
    return math.inf


@pytest.mark.parametrize(
    ("metric", "per_minute", "usual"),
    [*((metric, 60, usual) for metric in EXACT for usual in (0.0, 0.02)), (Metric.CONTRACT, 3, 0.01)],
)
@pytest.mark.parametrize("broken", [1.0, 0.5])
def test_target__broken_always_or_by_half__fails_within_20_requests(
    metric: Metric, per_minute: int, usual: float, broken: float
) -> None:
    rng = Random(3)

    found = [requests_until_failing(rng, metric, per_minute=per_minute, usual=usual, broken=broken) for _ in range(20)]

    assert sum(requests <= 20 for requests in found) >= 18


@tabled
def test_decide__signal_in_every_answer_of_the_target__takes_the_default_action(
    metric: Metric, decision: Decision
) -> None:
    state = after_minutes(start(), 40, with_events(metric, 1, 1), with_events(metric, 59, 1))

    found = decide(state, DEFAULT_STAGES[0], elapsed_minutes=40)

    assert (found.decision, found.reason) == (decision, Reason.METRIC_FAILING)
    assert [one.metric for one in found.assessment.metrics.values() if one.status is Status.FAILING] == [metric]


@pytest.mark.parametrize("metric", EXACT)
def test_assess__certain_difference_below_one_point__does_not_fail(metric: Metric) -> None:
    state = after_minutes(start(), 300, with_events(metric, 500, 4), with_events(metric, 500, 0))

    assert state.metrics[metric].evidence > 10
    assert assess(state).metrics[metric].status is not Status.FAILING


@pytest.mark.parametrize("metric", EXACT)
def test_decide__signal_undecided_from_50_percent__waits_until_it_passes(metric: Metric) -> None:
    both = arm(30, ms=(300,) * 30, usd=("0.001",) * 30)
    passing = replace(after_minutes(start(), 50, both, both), stage_target=Served(400))
    undecided = replace(passing, metrics={**passing.metrics, metric: start().metrics[metric]})

    promoted, held = (decide(state, DEFAULT_STAGES[4], elapsed_minutes=1000) for state in (passing, undecided))

    assert (promoted.decision, promoted.reason) == (Decision.PROMOTE, Reason.PASSING)
    assert (held.decision, held.reason) == (Decision.WAIT, Reason.INCONCLUSIVE)


def test_assess__nothing_answered_yet__does_not_judge_the_signals() -> None:
    found = assess(after_minutes(start(), 5, arm(0), arm(0))).metrics

    assert not any(found[metric].judged for metric in EXACT)


def test_stopped__always_in_the_target__is_shown_and_never_decides() -> None:
    stopping = after_minutes(start(), 300, with_events(Metric.STOPPED, 30, 30), arm(30, units=0))
    without = after_minutes(start(), 300, arm(30, units=0), arm(30, units=0))

    assert stopping.metrics[Metric.STOPPED].evidence > 100
    assert not assess(stopping).metrics[Metric.STOPPED].judged
    assert assess(stopping).metrics[Metric.STOPPED].status is not Status.FAILING
    assert assess(stopping).status is assess(without).status
    for stage in DEFAULT_STAGES:
        verdicts = [decide(state, stage, elapsed_minutes=1000) for state in (stopping, without)]
        assert verdicts[0].decision is verdicts[1].decision
        assert verdicts[0].reason is verdicts[1].reason
    shown = figures(stopping, Metric.STOPPED)
    assert (shown.target, shown.baseline) == (1, 0)
    assert shown.low is not None
    assert 0 < shown.low < 1


def test_policy__metrics_with_a_share_of_the_5_percent__are_those_with_an_action() -> None:
    assert {name for name in Policy.__slots__ if name not in ("cost_allowance", "thresholds")} == {
        metric.value for metric in ALPHA
    }
    assert sum(ALPHA.values()) == pytest.approx(0.0425)


def test_users__of_sticky_allocation__fail_a_signal_of_which_requests_say_nothing() -> None:
    """The design effect is not known here, so that only users count."""
    bad, good = UserCounts(contract={5: 6, 0: 1}, unanswered={0: 7}), UserCounts(contract={0: 8}, unanswered={0: 8})
    state = start(sticky=True)
    for minute in range(1, 7):
        target, baseline = arm(35, contract=30, users=bad), arm(40, users=good)
        state = advance(state, MinuteCounts(minute, 1, 50, target, baseline))

    assert assess(state).metrics[Metric.CONTRACT].status is Status.FAILING
    assert assess(state).metrics[Metric.TRUNCATED].status is Status.INCONCLUSIVE


def test_blocks__signals_without_an_event__say_the_same_as_each_other() -> None:
    """They are advanced once for all of them; a signal with events goes its own way and comes out as if alone."""
    alone = after_minutes(start(), 30, arm(10, contract=1), arm(40, contract=2))
    mixed = start()
    for _ in range(10):
        mixed = after_minutes(mixed, 3, arm(10, contract=1, truncated=2), arm(40, contract=2))

    assert mixed.metrics[Metric.CONTRACT] == alone.metrics[Metric.CONTRACT]
    assert mixed.metrics[Metric.EMPTY] == mixed.metrics[Metric.FALLBACK] == alone.metrics[Metric.TRUNCATED]
    assert events_of(mixed.target, Metric.TRUNCATED) == (60, 300)
