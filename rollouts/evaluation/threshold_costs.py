"""What the thresholds of a rollout cost: about how many requests of the target, and how long, until a target as bad as
may fail is found, and until a harmless one is shown to be within its margin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rollouts.evaluation.explanation import LABELS
from rollouts.evaluation.policy import FAIL_AT, PASS_AT, RATES, Metric, Policy, failing_difference
from rollouts.evaluation.power import Traffic, rate_growth
from rollouts.evaluation.state import FIRST_SHARE
from rollouts.evaluation.statistics.evidence import LOWER_ODDS, ODDS, RARE_ERRORS, rare_factor
from rollouts.evaluation.statistics.grid import Histogram, bins_of_factor
from rollouts.evaluation.statistics.margin import margin_rate
from rollouts.evaluation.words import about, in_words

_MOST = 10_000_000
_ERRORS = (Metric.UNANSWERED, Metric.ERROR_RATE)


@dataclass(frozen=True, slots=True)
class _Growth:
    """What one request of the target adds to the logarithm of the evidence on average; `harmless` to that of safety."""

    worse: float
    harmless: float
    bets: int


def sentences(policy: Policy, traffic: Traffic, weight: int) -> Iterator[str]:
    """Yields a sentence for each metric with a threshold of the rollout's own, at a stage of this weight in percent.
    Costs and average latencies have none: how much they vary is not known before."""
    for metric in LABELS:
        own = policy.threshold(metric)
        growth = (
            None if own.fail_from is None and own.margin is None else _growth(metric, policy, traffic, weight / 100)
        )
        if growth is None:
            continue
        found = _takes(FAIL_AT[metric] + math.log(len(ODDS)) - math.log(FIRST_SHARE[metric]), growth.worse)
        passes = _takes(PASS_AT + math.log(growth.bets), growth.harmless)
        per_minute = traffic.per_minute * weight / 100
        yield (
            f"{LABELS[metric]}, at {weight} %: a target that is just as much worse as may fail is"
            f" {_said('found', found, per_minute)}, and a harmless one {_said('passes', passes, per_minute)}."
        )


def _growth(metric: Metric, policy: Policy, traffic: Traffic, share: float) -> _Growth | None:
    if metric in RATES:
        # Nobody counts broken, cut off or empty answers before the rollout: hardly any is usual.
        return _of_rate(metric, policy, traffic.unanswered if metric in _ERRORS else 0.0, share)
    if metric is not Metric.LATENCY_P95 or not traffic.latency or traffic.reference is None:
        return None
    slow, latency = traffic.reference.slow_bin, traffic.latency
    size = failing_difference(metric, 1.0, policy) + 1
    usual, slower = _above(latency, slow), _above(latency, slow - bins_of_factor(size))
    eased = _above(latency, slow + bins_of_factor(policy.latency_margin))
    worse = max(rate_growth(slower, usual, share, odds) for odds in ODDS)
    harmless = max(rate_growth(eased, usual, share, odds) for odds in LOWER_ODDS)
    return _Growth(worse, harmless, len(LOWER_ODDS) + 1)


def _of_rate(metric: Metric, policy: Policy, usual: float, share: float) -> _Growth:
    points = policy.threshold(metric).margin
    fallen = min(1.0, usual + failing_difference(metric, usual, policy))
    worse = max(rate_growth(fallen, usual, share, odds) for odds in ODDS)
    rates = RARE_ERRORS if points is None else (points / 10, points)
    rare, often = (rare_factor(events=events, requests=1, rates=rates) for events in (0, 1))
    harmless = (1 - usual) * rare + usual * often
    if usual > 0:
        bound = margin_rate(usual, points)
        odds = math.log(bound * (1 - usual) / (usual * (1 - bound)))
        harmless = max(harmless, -rate_growth(usual, usual, share, odds))
    return _Growth(worse, harmless, 2)


def _above(latency: Histogram, bound: int) -> float:
    return sum(count for number, count in latency.items() if number > bound) / sum(latency.values())


def _takes(needed: float, growth: float) -> float | None:
    return needed / growth if growth > 0 and needed / growth < _MOST else None


def _said(what: str, requests: float | None, per_minute: float) -> str:
    if requests is None:
        return f"never {what}"
    lasts = f", {in_words(requests / per_minute)}" if per_minute else ""
    return f"{what} after about {about(requests)} of its requests{lasts}"
