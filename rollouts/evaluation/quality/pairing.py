"""The factors of one block: target and baseline paired in order of their hashes.

Within a block, if the arms do not differ, every choice of the target's tasks is as likely as any other, and the hashes
put both arms in any order alike. So each pair is as likely the other way round, whatever is known of the pairs before
it: its difference has a mean of 0, and no factor a mean above 1. That needs hashes that do not repeat and have nothing
to do with the answers; in order of time it would not hold. What finds no partner in its block is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollouts.evaluation.pairs import STAKES, not_worse_factors, worse_factors
from rollouts.evaluation.quality.rules import Evaluator
from rollouts.evaluation.quality.values import Value
from rollouts.evaluation.statistics.evidence import added

_NOTHING = (0.0,) * len(STAKES)


@dataclass(frozen=True, slots=True)
class PairFactors:
    """What a block says by stake, as logarithms. `pairs` is how many it had, `judged` how many could count against the
    target."""

    worse: tuple[float, ...] = _NOTHING
    not_worse: tuple[float, ...] = _NOTHING
    pairs: int = 0
    judged: int = 0


def pair_factors(target: Sequence[Value], baseline: Sequence[Value], evaluator: Evaluator, reach: float) -> PairFactors:
    """Takes values in order of their hashes. `reach` is the largest difference that two can have."""
    worse, not_worse, judged = _NOTHING, _NOTHING, 0
    pairs, scale = min(len(target), len(baseline)), evaluator.scale
    for own, theirs in zip(target[:pairs], baseline[:pairs], strict=True):
        if own.known and theirs.known:
            worse = added(worse, worse_factors((own.high - theirs.low) / reach))
            judged += 1
        if scale is not None:
            difference = (own.low - theirs.high) / reach
            not_worse = added(not_worse, not_worse_factors(difference, evaluator.margin * scale / reach))
    return PairFactors(worse, not_worse, pairs, judged)
