"""Measures the two arms of a rollout.

`outcomes` says what counts as what, for all of them. `by_arrival` counts by the minute in which requests came, as
rollouts under the first formula are judged; `by_record` and `users` by the minute in which their rows came, as those
under the second are. `totals` are what people are shown.
"""

from analytics.queries.variants.outcomes import BASELINE, TARGET
from analytics.queries.variants.totals import ArmTotals, UsualValues, arm_totals, usual_values

__all__ = ["BASELINE", "TARGET", "ArmTotals", "UsualValues", "arm_totals", "usual_values"]
