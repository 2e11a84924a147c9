"""Is a rollout's target harmless? Conditional e-processes over closed minutes; pure, no framework.

`initial_state` at the start, `advance` with every closed minute, then `decide` for the verdict, `assess` for the
statuses and `figures` for what people are shown. `to_json` and `from_json` store states and minutes; `replay` repeats
any decision from them.
"""

from rollouts.evaluation.formula_1.advance import advance, replay
from rollouts.evaluation.formula_1.assess import Assessment, MetricStatus, Status, assess
from rollouts.evaluation.formula_1.comparison import Figures, figures
from rollouts.evaluation.formula_1.counts import ArmCounts, ClusterSums, MinuteCounts
from rollouts.evaluation.formula_1.explanation import explain
from rollouts.evaluation.formula_1.policy import Action, Metric, Policy
from rollouts.evaluation.formula_1.state import FORMULA, State, initial_state
from rollouts.evaluation.formula_1.verdict import Decision, Reason, Verdict, decide
from rollouts.evaluation.grid import bin_of, bin_sql
from rollouts.evaluation.json_form import from_json, to_json

__all__ = [
    "FORMULA",
    "Action",
    "ArmCounts",
    "Assessment",
    "ClusterSums",
    "Decision",
    "Figures",
    "Metric",
    "MetricStatus",
    "MinuteCounts",
    "Policy",
    "Reason",
    "State",
    "Status",
    "Verdict",
    "advance",
    "assess",
    "bin_of",
    "bin_sql",
    "decide",
    "explain",
    "figures",
    "from_json",
    "initial_state",
    "replay",
    "to_json",
]
