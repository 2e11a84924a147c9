"""The test of the sample ratio: whether the arms get their shares of the traffic. A wrong share means lost or
misattributed records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from rollouts.evaluation.statistics.evidence import log_mean

_CONCENTRATIONS = (3.0, 30.0, 300.0, 3000.0)
"""The concentrations of the shares that are tested around the weight: a low one finds a gross loss in few records, a
high one a small loss in many."""
ALARM_AT = math.log(1000.0)


@dataclass(frozen=True, slots=True)
class SampleRatio:
    """The units seen in the current stage, and the ln of the evidence of the stages before."""

    before: float = 0.0
    stage: int = 0
    weight: int = 0
    target: int = 0
    baseline: int = 0

    @property
    def evidence(self) -> float:
        """Returns ln R. R is the product over the stages of the mean Bayes factor of shares drawn from around the
        weight against exactly the weight; its mean is 1."""
        return self.before + self._of_stage()

    @property
    def alarmed(self) -> bool:
        return self.evidence >= ALARM_AT

    def advance(self, *, stage: int, weight: int, target: int, baseline: int) -> SampleRatio:
        if stage < self.stage or not (target or baseline):
            return self
        if (stage, weight) != (self.stage, self.weight):
            return SampleRatio(self.evidence, stage, weight, target, baseline)
        return replace(self, target=self.target + target, baseline=self.baseline + baseline)

    def _of_stage(self) -> float:
        share = self.weight / 100
        if not 0 < share < 1 or not (self.target or self.baseline):
            return 0.0
        expected = self.target * math.log(share) + self.baseline * math.log(1 - share)
        return log_mean([self._factor(concentration, share) for concentration in _CONCENTRATIONS]) - expected

    def _factor(self, concentration: float, share: float) -> float:
        a, b = concentration * share, concentration * (1 - share)
        return _log_beta(a + self.target, b + self.baseline) - _log_beta_before(a, b)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


_log_beta_before = lru_cache(maxsize=256)(_log_beta)
