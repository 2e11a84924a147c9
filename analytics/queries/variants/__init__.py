"""Measures the two arms of a rollout.

`outcomes` says what counts as what, for all of them. `by_record` and `users` count by the minute in which rows came, as
rollouts are judged; `totals` are what people are shown.
"""

from analytics.queries.variants.outcomes import BASELINE, TARGET
from analytics.queries.variants.totals import ArmTotals, UsualValues, arm_totals, usual_values

__all__ = ["BASELINE", "TARGET", "ArmTotals", "UsualValues", "arm_totals", "usual_values"]
