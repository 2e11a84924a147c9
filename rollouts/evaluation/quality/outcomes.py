"""The outcomes that applications send: one of each unit that is allocated, counted when it came.

If the target changes nothing, it is chance which of the outcomes of a block are its own, however late each came. So
those that are true or false are bet on as rates, by the exact odds of that choice, and numbers as scores, in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rollouts.evaluation.quality.pairing import pair_factors
from rollouts.evaluation.quality.rules import Evaluator
from rollouts.evaluation.quality.state import EvaluatorState
from rollouts.evaluation.quality.values import Value
from rollouts.evaluation.statistics.evidence import added, odds_between

_BOTH = {0.0, 1.0}
_ODDS = tuple(math.log(odds) for odds in (1.1, 1.25, 1.6, 2.5, 5.0))
"""Lower than those of errors, as many as the stakes: outcomes are seldom rare, and a gain of a tenth is worth it."""


def rate_factors(target: Sequence[Value], baseline: Sequence[Value]) -> tuple[float, ...] | None:
    """Returns by odds how much a block speaks for more bad outcomes of the target; None if they are numbers, or of one
    arm alone. Which of the two they are does not depend on whose they are."""
    if not target or not baseline or any(one.low not in _BOTH for one in (*target, *baseline)):
        return None
    own, theirs = (
        (len(values) - math.floor(math.fsum([one.low for one in values])), len(values)) for values in (target, baseline)
    )
    return odds_between(own, theirs, _ODDS)


def with_goal(
    one: EvaluatorState, rule: Evaluator, target: Sequence[Value], baseline: Sequence[Value]
) -> EvaluatorState:
    exchanged = pair_factors(baseline, target, rule, 1.0)
    return replace(
        one,
        better=added(one.better, rate_factors(baseline, target) or exchanged.worse),
        not_better=added(one.not_better, exchanged.not_worse),
    )
