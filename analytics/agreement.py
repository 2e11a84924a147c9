"""How far two raters agree: equal verdicts, Cohen's kappa, correlation. Pure.

Kappa is Cohen's (1960) with his large-sample standard error; the interval of a share is Wilson's (1927), that of a
correlation Fisher's (1921). All intervals are 95 percent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, StatisticsError, correlation, fmean

_Z = NormalDist().inv_cdf(0.975)
_MIN_FOR_FISHER = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its interval. The bounds are None if the sample is too small for an interval."""

    value: float
    low: float | None
    high: float | None


def share_of(part: float, count: float) -> Estimate | None:
    """Returns the share that `part` is of `count`, from 0 to 1; None of nothing. Where some of them come together both
    are effective numbers, which need not be whole."""
    return Estimate(part / count, *wilson(part, count)) if count else None


def wilson(part: float, count: float) -> tuple[float, float]:
    """Returns the interval of the share that `part` is of `count`, which is above 0."""
    rate, whole = part / count, 1 + _Z * _Z / count
    middle = (rate + _Z * _Z / (2 * count)) / whole
    half = _Z / whole * math.sqrt(rate * (1 - rate) / count + _Z * _Z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def equal_share(pairs: Sequence[tuple[Hashable, Hashable]]) -> Estimate | None:
    return share_of(sum(first == second for first, second in pairs), len(pairs))


def cohens_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> Estimate | None:
    """Returns kappa, from -1 to 1; None if chance alone always agrees, as with a single verdict in use."""
    if not pairs:
        return None
    count = len(pairs)
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    by_chance = sum(firsts[verdict] * seconds[verdict] for verdict in firsts) / count**2
    if by_chance >= 1:
        return None
    observed = sum(first == second for first, second in pairs) / count
    kappa = (observed - by_chance) / (1 - by_chance)
    half = _Z * math.sqrt(observed * (1 - observed) / (count * (1 - by_chance) ** 2))
    return Estimate(kappa, max(-1.0, kappa - half), min(1.0, kappa + half))


def pearson(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """Returns the correlation, from -1 to 1; None with fewer than two pairs or if one rater never varies."""
    try:
        found = correlation(*zip(*pairs, strict=True)) if len(pairs) > 1 else None
    except StatisticsError:
        return None
    if found is None:
        return None
    value = max(-1.0, min(1.0, found))
    if len(pairs) < _MIN_FOR_FISHER or abs(value) == 1:
        return Estimate(value, None, None)
    middle, half = math.atanh(value), _Z / math.sqrt(len(pairs) - 3)
    return Estimate(value, math.tanh(middle - half), math.tanh(middle + half))


def mean_difference(pairs: Sequence[tuple[float, float]]) -> float | None:
    return fmean(abs(first - second) for first, second in pairs) if pairs else None
