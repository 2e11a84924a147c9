"""The margin of the error rate: how many errors are still harmless."""

from __future__ import annotations

import math

_MIN_REQUESTS = 100
_TIMES, _PLUS = 2.0, 0.01


def margin_rate(rate: float) -> float:
    """Returns the error rate below which a target passes: twice the baseline's, or one percentage point more."""
    # Twice a rate above one half exceeds 1, so the bound is then halfway between the rate and 1.
    return min(max(_TIMES * rate, rate + _PLUS), (1 + rate) / 2)


def margin_odds(*, errors: int, requests: int) -> float | None:
    """Returns ln of the odds ratio of the margin against the baseline so far; None while too little is known of the
    baseline."""
    if requests < _MIN_REQUESTS:
        return None
    # The rate is raised by one standard deviation, because an underestimated baseline would make the margin too wide.
    rate = (errors + math.sqrt(errors) + 1) / (requests + math.sqrt(errors) + 2)
    bound = margin_rate(rate)
    return math.log(bound * (1 - rate) / (rate * (1 - bound)))
