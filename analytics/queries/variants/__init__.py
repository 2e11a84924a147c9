"""Measures the two arms of a rollout.

`outcomes` classifies the requests for all of them. `by_record` and `users` count by the minute in which rows were
recorded, as rollouts are judged; `totals` are shown to people.
"""

from analytics.queries.variants.outcomes import BASELINE, TARGET
from analytics.queries.variants.totals import ArmTotals, UsualValues, arm_totals, usual_values

__all__ = ["BASELINE", "TARGET", "ArmTotals", "UsualValues", "arm_totals", "usual_values"]
