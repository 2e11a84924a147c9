from __future__ import annotations

import math

_MIN_REQUESTS = 100
_TIMES, _PLUS = 2.0, 0.01
_SPELL_TIMES, _SPELL_PLUS = 2.0, 10


def margin_rate(rate: float) -> float:
    # Twice a rate above one half exceeds 1, so the bound is then halfway between the rate and 1.
    return min(max(_TIMES * rate, rate + _PLUS), (1 + rate) / 2)


def margin_odds(*, errors: float, requests: float) -> float | None:
    """Returns ln of the odds ratio of the margin against the baseline; None while too little is known of the
    baseline.
    """
    if requests < _MIN_REQUESTS:
        return None
    rate = _raised(errors, requests)
    bound = margin_rate(rate)
    return math.log(bound * (1 - rate) / (rate * (1 - bound)))


def is_spell(events: int, total: int, *, errors: float, requests: float) -> bool:
    """Returns whether a block of both arms has many more events than a target at its margin explains."""
    return events > _SPELL_TIMES * margin_rate(_raised(errors, requests)) * total + _SPELL_PLUS


def _raised(errors: float, requests: float) -> float:
    # By one standard deviation, because an underestimated baseline would make the margin too wide.
    return (errors + math.sqrt(errors) + 1) / (requests + math.sqrt(errors) + 2)
