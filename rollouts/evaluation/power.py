"""The power of the tests: the time until a fault of the target would be found at the present traffic.

The times are expected values. A fault in a share p1 of the target's requests adds an expected amount to ln E with each
of them: at odds of psi, p1 ln psi - ln h, h being the mean over the choices of the target's requests. The fault is
found about when these amounts, at the best of the odds, outweigh the threshold, the mean over the odds and the
processes that begin later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rollouts.evaluation.policy import (
    CONTROLLED_WEIGHT,
    FAIL_AT,
    KEPT_MINUTES,
    MIN_TARGET_REQUESTS,
    RATE_COUNT_SIZE,
    RATE_SIZE,
    RATES,
    Metric,
)
from rollouts.evaluation.state import FIRST_SHARE
from rollouts.evaluation.statistics.evidence import ODDS, TILTS
from rollouts.evaluation.statistics.grid import Histogram, value_of
from rollouts.evaluation.statistics.margin import margin_rate
from rollouts.evaluation.statistics.reference import Reference
from rollouts.evaluation.words import in_words
from rollouts.states import Stage

MAX_DETECTION_MINUTES = 7 * 24 * 60.0
"""The longest search in minutes, a week. A fault that takes longer counts as never found."""

_MIN_STEPS = 200
_SLOWER = 1.3


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests a minute of both arms together, their unanswered share, and latencies by bin with their reference where
    known."""

    per_minute: float
    unanswered: float
    latency: Histogram | None = None
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class RolloutDetection:
    """A fall in the share of answered requests, and the approximate minutes and target requests until it is found. Both
    are None if it is not found within a week or before the last stage with a baseline ends."""

    answered_share: float
    fallen_to: float
    minutes: float | None
    target_requests: float | None


@dataclass(frozen=True, slots=True)
class Power:
    """`fall` is a typical fall of the share of answered requests, `smallest` the smallest one that is found before all
    traffic goes to the target; None: not even a target that answers nothing is found.

    `slower_minutes` is the time until an average latency of 1.3 times the usual is found; None: not found, or no
    latencies known. `sentences` explain the figures to people.
    """

    fall: RolloutDetection
    smallest: RolloutDetection | None
    slower_minutes: float | None
    sentences: tuple[str, ...] = ()

    @property
    def explanation(self) -> str:
        return " ".join(self.sentences)


def power(stages: Sequence[Stage], traffic: Traffic, *, elapsed_minutes: float = 0.0, served: int = 0) -> Power:
    """Returns the power over `stages`, the present one first. It has already run for `elapsed_minutes` and answered
    `served` requests of the target.

    Raises ValueError without any stage, or for shares and rates out of range.
    """
    if not stages:
        raise ValueError("stages: at least the present one is expected")
    if not (0 <= traffic.unanswered <= 1 and traffic.per_minute >= 0):
        raise ValueError("traffic: per_minute must be at least 0, and unanswered a share from 0 to 1")
    plan = _Plan(tuple(stages), traffic.per_minute, elapsed_minutes, served)
    found = Power(
        fall=_found(plan, traffic.unanswered, _typical(traffic.unanswered)),
        smallest=_smallest(plan, traffic.unanswered),
        slower_minutes=_slower_minutes(plan, traffic),
    )
    return replace(found, sentences=tuple(_sentences(traffic, found, controlled=stages[0].weight < 100)))


@dataclass(frozen=True, slots=True)
class _Plan:
    stages: tuple[Stage, ...]
    per_minute: float
    elapsed_minutes: float
    served: int

    def spans(self, unanswered: float, *, holds: bool) -> Iterator[tuple[float, float, float]]:
        """`holds`: from 50 % on the stages do not end by their minima, because the target does not pass."""
        for number, stage in enumerate(self.stages):
            if stage.weight >= 100:
                return
            share = stage.weight / 100
            elapsed, served = (self.elapsed_minutes, self.served) if number == 0 else (0.0, 0)
            settles = max(0.0, stage.settle_minutes - elapsed)
            if holds and stage.weight >= CONTROLLED_WEIGHT:
                yield share, math.inf, settles
                return
            answered = self.per_minute * share * (1 - unanswered)
            missing = max(0, stage.min_requests - served)
            waits = (missing / answered if answered else math.inf) if missing else 0.0
            yield share, max(0.0, stage.min_duration_minutes - elapsed, waits), settles


def _found(plan: _Plan, usual: float, fallen: float) -> RolloutDetection:
    plus, times = RATE_SIZE
    if fallen - usual < plus or fallen < times * usual:
        return RolloutDetection(1 - usual, 1 - fallen, None, None)
    minutes, requests = _reached(
        plan,
        lambda share, odds: rate_growth(fallen, usual, share, odds),
        metric=Metric.UNANSWERED,
        tilts=ODDS,
        least=RATE_COUNT_SIZE / fallen,
        spans=plan.spans(fallen, holds=fallen > margin_rate(usual)),
    )
    return RolloutDetection(1 - usual, 1 - fallen, minutes, requests)


def rate_growth(fallen: float, usual: float, share: float, odds: float) -> float:
    """Returns the expected ln of a factor per request of a target with `share` of the traffic; `odds` is a logarithm.

    The mean over the choices is below both of its bounds: for independent arms and for independent events.
    """
    both, more = share * fallen + (1 - share) * usual, math.expm1(odds)
    return fallen * odds - min(math.log1p(both * more), both / share * math.log1p(share * more))


def mean_growth(latency: Histogram, reference: Reference, times: float, share: float, tilt: float) -> float:
    """Returns what a request of a target that is so many `times` as slow adds to the evidence on average."""
    total = sum(latency.values())
    # The requests of the smaller arm are those that are drawn (see `tilt_factors`).
    is_target = share <= 0.5
    signed = tilt if is_target else -tilt

    def score(number: int, factor: float) -> float:
        return (min(value_of(number) * factor, reference.cap) - reference.mean) / reference.deviation

    own = math.fsum(count * score(number, times if is_target else 1.0) for number, count in latency.items()) / total
    mean = math.fsum(
        count * (share * math.exp(signed * score(number, times)) + (1 - share) * math.exp(signed * score(number, 1.0)))
        for number, count in latency.items()
    )
    return (signed * own - math.log(mean / total)) * (1 if is_target else (1 - share) / share)


def _reached(
    plan: _Plan,
    growth: Callable[[float, float], float],
    *,
    metric: Metric,
    tilts: Sequence[float],
    least: float,
    spans: Iterator[tuple[float, float, float]],
) -> tuple[float | None, float | None]:
    needed = FAIL_AT[metric] + math.log(len(tilts)) - math.log(FIRST_SHARE[metric])
    sums, minutes, requests = [0.0] * len(tilts), 0.0, 0.0
    for share, lasts, settles in spans:
        rate = plan.per_minute * share
        if metric not in RATES:
            idle = min(settles, lasts)
            minutes, requests, lasts = minutes + idle, requests + rate * idle, lasts - idle
        judged = 1.0 if metric in RATES else _warm(rate) * _warm(plan.per_minute - rate)
        gains = [judged * growth(share, tilt) for tilt in tilts]
        enough = min((needed - one) / gain if gain > 0 else math.inf for one, gain in zip(sums, gains, strict=True))
        enough = max(enough, least - requests, 0.0)
        takes = enough / rate if rate else math.inf
        if takes <= lasts and minutes + takes <= MAX_DETECTION_MINUTES:
            return minutes + takes, requests + enough
        if minutes + lasts > MAX_DETECTION_MINUTES:
            break
        minutes, requests = minutes + lasts, requests + rate * lasts
        sums = [one + gain * rate * lasts for one, gain in zip(sums, gains, strict=True)]
    return None, None


def _warm(per_minute: float) -> float:
    return -math.expm1(-per_minute * KEPT_MINUTES)


def _typical(usual: float) -> float:
    return min(max(3 * usual, usual + 0.02), (1 + usual) / 2)


def _smallest(plan: _Plan, usual: float) -> RolloutDetection | None:
    least, most = RATE_SIZE[0], 1 - usual
    # The rates are evenly spaced by their logarithms, from half a percentage point above the usual rate to 1. The
    # typical fall is among them: where it is found, the smallest one must not be larger.
    steps = [least * (most / least) ** (step / _MIN_STEPS) if most > least else most for step in range(_MIN_STEPS + 1)]
    found = (_found(plan, usual, usual + more) for more in sorted({*steps, _typical(usual) - usual}))
    return next((one for one in found if one.minutes is not None), None)


def _slower_minutes(plan: _Plan, traffic: Traffic) -> float | None:
    latency, reference = traffic.latency, traffic.reference
    if not latency or reference is None:
        return None
    minutes, _ = _reached(
        plan,
        lambda share, tilt: mean_growth(latency, reference, _SLOWER, share, tilt),
        metric=Metric.LATENCY_AVERAGE,
        tilts=TILTS,
        least=MIN_TARGET_REQUESTS,
        spans=plan.spans(traffic.unanswered, holds=True),
    )
    return minutes


def _sentences(traffic: Traffic, power: Power, *, controlled: bool) -> Iterator[str]:
    if not controlled:
        yield "Nothing is found any more: all traffic goes to the target, and nobody is left to compare with."
        return
    if not traffic.per_minute:
        yield "Nothing can be found without requests."
        return
    fall, smallest, pace = power.fall, power.smallest, f"At {traffic.per_minute:.3g} requests a minute"
    text = f"{pace} a fall from {_percent(fall.answered_share)} to {_percent(fall.fallen_to)} of answers is"
    yield f"{text} found within about {in_words(fall.minutes)}." if fall.minutes else f"{text} not found within a week."
    if smallest is None or smallest.minutes is None:
        yield "The stages are too short for this traffic: not even a target that never answers is found by their end."
    else:
        found = f"{_percent(smallest.fallen_to)}, within about {in_words(smallest.minutes)}"
        yield f"The smallest fall that is found before all traffic goes to the target is one to {found}."
    if power.slower_minutes is not None:
        yield f"A target {_SLOWER} times as slow on average is found within about {in_words(power.slower_minutes)}."


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"
