"""The worked example of docs/rollouts.md, recalculated by the functions that decide."""

from __future__ import annotations

import math
import re

import pytest

from rollouts.allocation import UnitKind, Variant, unit_number, variant_at
from rollouts.evaluation import ArmCounts, Metric, MinuteCounts, Policy, State, advance, decide, figures, initial_state
from rollouts.evaluation.policy import FAIL_AT
from rollouts.evaluation.statistics.evidence import ODDS, odds_factors
from rollouts.states import Stage
from tests.worked_examples import example_of, rows

WEIGHTS = (10, 50, 100)


@pytest.fixture(scope="module")
def example() -> str:
    return example_of("rollouts.md")


def number(example: str, pattern: str) -> float:
    found = re.search(pattern, " ".join(example.split()))
    assert found is not None, pattern
    return float(found[1])


def minutes(example: str) -> list[MinuteCounts]:
    return [
        MinuteCounts(
            int(minute), 1, WEIGHTS[0], arm(target, theirs, "missing_variable"), arm(rest, gone, "client_left")
        )
        for minute, target, theirs, rest, gone, _, _ in rows(example, "Minute")[1:]
    ]


def arm(requests: str, unanswered: str, reason: str) -> ArmCounts:
    """A missing variable and a client that left are outcomes that the service does not answer for."""
    total, bad = int(requests), int(unanswered)
    return ArmCounts(
        requests=total, unanswered=bad, judged=total - bad, units=total, reasons={reason: bad} if bad else {}
    )


def states(example: str) -> list[State]:
    state, found = initial_state(Policy(), latency={}, cost={}, weights=WEIGHTS, sticky=False), []
    for minute in minutes(example):
        state = advance(state, minute)
        found.append(state)
    return found


def test_first_request__its_number__gets_the_target(example: str) -> None:
    [(rollout, request)] = set(re.findall(r"([0-9a-f-]{36}):request:([0-9a-f-]{36})", example))
    unit = unit_number(rollout, UnitKind.REQUEST, request)
    assert f"\n{unit}, which is {unit % 10_000} modulo" in example
    assert variant_at(unit, WEIGHTS[0]) is Variant.TARGET


def test_first_minute__the_fair_price_of_a_bet__as_by_hand(example: str) -> None:
    first = minutes(example)[0]
    drawn, total = first.target.requests, first.target.requests + first.baseline.requests
    events = first.target.unanswered + first.baseline.unanswered
    chances = [
        math.comb(events, hit) * math.comb(total - events, drawn - hit) / math.comb(total, drawn) for hit in range(3)
    ]
    none, one, both = (f"{chance:.5f}" for chance in chances)
    price = sum(chance * 3**hit for hit, chance in enumerate(chances))
    text = " ".join(example.split())
    assert f"probability of 55/60 x 54/59 = {none}, one with {one} and both with {both}" in text
    assert f"{none} + 3 x {one} + 9 x {both} = {price:.5f}. So it pays 3 / {price:.5f} = {3 / price:.4f}." in text


def test_first_minute__all_bets__their_mean_and_the_half_that_waits(example: str) -> None:
    first = minutes(example)[0]
    factors = odds_factors(
        events=first.target.unanswered,
        drawn=first.target.requests,
        all_events=first.target.unanswered + first.baseline.unanswered,
        total=first.target.requests + first.baseline.requests,
        odds=ODDS,
    )
    odds, paid = rows(example, "Odds")
    assert [float(cell) for cell in odds[1:]] == [pytest.approx(math.exp(one)) for one in ODDS]
    assert paid[1:] == [f"{math.exp(factor):.4f}" for factor in factors]
    mean = sum(math.exp(factor) for factor in factors) / len(factors)
    evidence = math.exp(states(example)[0].metrics[Metric.UNANSWERED].evidence)
    assert number(example, r"E = 0\.5 x ([\d.]+) \+ 0\.5 x 1 =") == pytest.approx(mean, abs=5e-5)
    assert number(example, r"\+ 0\.5 x 1 = ([\d.]+)\.") == pytest.approx(evidence, abs=5e-5)
    assert evidence == pytest.approx(0.5 * mean + 0.5)


def test_every_minute__evidence_and_verdict__as_the_page_says(example: str) -> None:
    for cells, state in zip(rows(example, "Minute")[1:], states(example), strict=True):
        evidence = math.exp(state.metrics[Metric.UNANSWERED].evidence)
        assert float(cells[5]) == pytest.approx(evidence, rel=0.005)
        verdict = decide(state, Stage(WEIGHTS[0], 60, 100), elapsed_minutes=int(cells[0]))
        assert verdict.decision.value.replace("_", " ") == cells[6]
    assert cells[6] == "roll back"


def test_verdict__figures_and_explanation__as_the_page_says(example: str) -> None:
    *_, before, last = states(example)
    verdict, shown = decide(last, Stage(WEIGHTS[0], 60, 100), elapsed_minutes=8), figures(last, Metric.UNANSWERED)
    assert shown.target is not None
    assert shown.baseline is not None
    assert [line.removeprefix("> ") for line in example.splitlines() if line.startswith("> ")] == [verdict.explanation]
    assert number(example, r"is ([\d.]+) % against") == pytest.approx(shown.target * 100, abs=0.005)
    assert number(example, r"% against ([\d.]+) % of the baseline") == pytest.approx(shown.baseline * 100, abs=0.005)
    assert number(example, r"rolled back after (\d+) requests of the target") == last.target.requests
    assert (
        number(example, r"made 1 into (\d+): not")
        == round(math.exp(before.metrics[Metric.UNANSWERED].evidence))
        < round(math.exp(FAIL_AT[Metric.UNANSWERED]))
    )
