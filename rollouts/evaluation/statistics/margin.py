from __future__ import annotations

import math

_MIN_REQUESTS = 100
_TIMES, _PLUS = 2.0, 0.01
_SPELL_TIMES, _SPELL_PLUS = 2.0, 10


def margin_rate(rate: float, points: float | None = None) -> float:
    """`points` are a rollout's own margin above the rate."""
    bound = max(_TIMES * rate, rate + _PLUS) if points is None else rate + points
    # Twice a rate above one half exceeds 1, so the bound is then halfway between the rate and 1.
    return min(bound, (1 + rate) / 2)


def margin_odds(*, errors: float, requests: float, points: float | None = None) -> float | None:
    """Returns ln of the odds ratio of the margin against the baseline; None while too little is known of the
    baseline.
    """
    if requests < _MIN_REQUESTS:
        return None
    rate = raised(errors, requests)
    bound = margin_rate(rate, points)
    return math.log(bound * (1 - rate) / (rate * (1 - bound)))


def margin_beside(
    events: float, requests: float, overall: tuple[int, int], points: float | None = None
) -> float | None:
    """Returns the odds ratio of the margin over a time that has outages of both arms in it: `overall` are the
    baseline's events and requests in all, `events` and `requests` those without outages. The margin is as many points
    above the overall rate as it is above the rate without outages. None while too little is known."""
    if min(requests, overall[1]) < _MIN_REQUESTS:
        return None
    usual, rate = raised(events, requests), raised(*overall)
    bound = min(rate + margin_rate(usual, points) - usual, (1 + rate) / 2)
    return bound * (1 - rate) / (rate * (1 - bound))


def is_spell(events: int, total: int, *, errors: float, requests: float) -> bool:
    """Returns whether a block of both arms has many more events than a target at its margin explains."""
    return events > _SPELL_TIMES * margin_rate(raised(errors, requests)) * total + _SPELL_PLUS


def raised(errors: float, requests: float) -> float:
    # By one standard deviation, because an underestimated baseline would make the margin too wide.
    return (errors + math.sqrt(errors) + 1) / (requests + math.sqrt(errors) + 2)
