"""The test of the sample ratio: whether the arms get their shares of the traffic. A wrong share means that records
are lost or misattributed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

_CONCENTRATION = 1000.0
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
        """Returns ln R, the logarithm of the Bayes factor of a share drawn from around the weight against exactly the
        weight. The mean of R is 1."""
        return self.before + self._of_stage()

    @property
    def alarmed(self) -> bool:
        return self.evidence >= ALARM_AT

    def advance(self, *, stage: int, weight: int, target: int, baseline: int) -> SampleRatio:
        if (stage, weight) != (self.stage, self.weight):
            return SampleRatio(self.evidence, stage, weight, target, baseline)
        return replace(self, target=self.target + target, baseline=self.baseline + baseline)

    def _of_stage(self) -> float:
        share = self.weight / 100
        if not 0 < share < 1:
            return 0.0
        a, b = _CONCENTRATION * share, _CONCENTRATION * (1 - share)
        expected = self.target * math.log(share) + self.baseline * math.log(1 - share)
        return _log_beta(a + self.target, b + self.baseline) - _log_beta(a, b) - expected


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
