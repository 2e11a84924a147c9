"""The factors of the e-processes, which measure how much one minute or block speaks for or against the target.

Within a minute, if the arms do not differ, every choice of n of the N requests is as likely to be the target's as any
other, whatever the load, the provider's state or the weight. Each factor below has a mean of at most 1 over these
choices, so their product over all minutes stays below 1/a with probability 1 - a, however often one looks (Ville's
inequality).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rollouts.evaluation.statistics.grid import Histogram, value_of
from rollouts.evaluation.statistics.reference import Reference

ODDS = tuple(math.log(odds) for odds in (1.5, 2.0, 3.0, 5.0, 10.0))
"""The logarithms of the odds ratios at which a worse target is tested."""
LOWER_ODDS = tuple(-odds for odds in ODDS)
TILTS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
COARSE_TILTS = (0.1, 0.2, 0.4, 0.8)
"""Those of formula 3, and of users counted once each. The finer ones are for values that vary more than their mean."""

RARE_ERRORS = (0.001, 0.01)
RARELY_SLOW = (0.01, 0.05)
"""A rate that is safely rare, and the lowest rate of a target at its margin."""


def odds_factors(*, events: int, drawn: int, all_events: int, total: int, odds: tuple[float, ...]) -> tuple[float, ...]:
    if not all_events:
        return (0.0,) * len(odds)
    # Single odds are those of a margin, which hardly ever recurs, so that caching them is useless.
    log_means = _usual_log_means if len(odds) > 1 else _log_means
    means = log_means(all_events, drawn, total, odds)
    return tuple([events * log_odds - mean for log_odds, mean in zip(odds, means, strict=True)])


def odds_between(
    target: tuple[int, int], baseline: tuple[int, int], odds: tuple[float, ...] = ODDS
) -> tuple[float, ...]:
    (events, drawn), (others_events, others) = target, baseline
    return odds_factors(events=events, drawn=drawn, all_events=events + others_events, total=drawn + others, odds=odds)


def _log_means(all_events: int, drawn: int, total: int, odds: tuple[float, ...]) -> tuple[float, ...]:
    fewest, most = max(0, drawn - (total - all_events)), min(all_events, drawn)
    weights, weight = [0.0], 0.0
    for count in range(fewest, most):
        weight += math.log((all_events - count) * (drawn - count)) - math.log(
            (count + 1) * (total - all_events - drawn + count + 1)
        )
        weights.append(weight)
    whole = log_sum(weights)
    return tuple([log_sum([w + (fewest + i) * one for i, w in enumerate(weights)]) - whole for one in odds])


_usual_log_means = lru_cache(maxsize=8192)(_log_means)


def rare_factor(*, events: int, requests: int, rates: tuple[float, float]) -> float:
    """Returns ln of the likelihood ratio of the first rate against the second: evidence of safety if there is next to
    nothing to count.

    Its mean is at most 1 whenever the true rate is at least the second.
    """
    rare, margin = rates
    return events * math.log(rare / margin) + (requests - events) * math.log((1 - rare) / (1 - margin))


def tilt_factors(
    target: Histogram, baseline: Histogram, reference: Reference, *, divisor: float, upwards: bool
) -> tuple[float, ...]:
    """Returns l Σ z - n ln( mean of exp(l z) ) for each l of `TILTS`, z being the standardised values of the smaller
    arm's n requests; the target's are divided first.

    Upwards it grows when the target's values are higher than the baseline's, else when they are lower. The mean is at
    most 1, because drawing without replacement spreads less than drawing with it (Hoeffding 1963, theorem 4). That
    costs the more, the larger a part of all requests are drawn, so it is the smaller arm: which one that is, is known
    before the outcomes.
    """
    if sum(target.values()) <= sum(baseline.values()):
        return _drawn(target, baseline, reference, (divisor, 1.0), upwards, TILTS)
    return _drawn(baseline, target, reference, (1.0, divisor), not upwards, TILTS)


def tilt_factors_3(
    target: Histogram, baseline: Histogram, reference: Reference, *, divisor: float, upwards: bool
) -> tuple[float, ...]:
    """Returns the factors of formula 3, in which the target's requests are always those that are drawn."""
    return _drawn(target, baseline, reference, (divisor, 1.0), upwards, COARSE_TILTS)


def _drawn(
    drawn: Histogram,
    left: Histogram,
    reference: Reference,
    divisors: tuple[float, float],
    upwards: bool,
    tilts: tuple[float, ...],
) -> tuple[float, ...]:
    number_drawn, number_left = sum(drawn.values()), sum(left.values())
    if not number_drawn or not number_left:
        return (0.0,) * len(tilts)
    own, theirs = (_tilted(reference, divisor, upwards, tilts) for divisor in divisors)
    scores = math.fsum([own[number][0] * count for number, count in drawn.items()])
    sums = [0.0] * len(tilts)
    for histogram, table in ((drawn, own), (left, theirs)):
        # The bins are summed in order, so that the sum does not depend on how a database stores them.
        for number in sorted(histogram):
            count, powers = histogram[number], table[number][1]
            sums = [one + count * power for one, power in zip(sums, powers, strict=True)]
    total = number_drawn + number_left
    return tuple([tilt * scores - number_drawn * math.log(one / total) for tilt, one in zip(tilts, sums, strict=True)])


class _Tilted(dict[int, tuple[float, tuple[float, ...]]]):
    """By bin the standardised value, and its exponential for each tilt."""

    def __init__(self, reference: Reference, divisor: float, upwards: bool, tilts: tuple[float, ...]) -> None:
        super().__init__()
        self._reference = reference
        self._divisor = divisor
        self._sign = 1.0 if upwards else -1.0
        self._tilts = tilts

    def __missing__(self, number: int) -> tuple[float, tuple[float, ...]]:
        cut = min(value_of(number) / self._divisor, self._reference.cap)
        score = self._sign * (cut - self._reference.mean) / self._reference.deviation
        entry = self[number] = (score, tuple([math.exp(tilt * score) for tilt in self._tilts]))
        return entry


@lru_cache(maxsize=256)
def _tilted(reference: Reference, divisor: float, upwards: bool, tilts: tuple[float, ...]) -> _Tilted:
    return _Tilted(reference, divisor, upwards, tilts)


def added(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def log_sum(logs: Iterable[float]) -> float:
    values = list(logs)
    highest = max(values)
    return highest + math.log(math.fsum([math.exp(value - highest) for value in values]))


def log_mean(logs: Sequence[float]) -> float:
    if not any(logs):
        return 0.0
    return log_sum(logs) - math.log(len(logs))
