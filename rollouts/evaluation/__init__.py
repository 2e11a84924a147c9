"""Is a rollout's target harmless? Conditional e-processes over closed minutes; pure, no framework.

`initial_state` at the start, `advance` with every closed minute, then `decide` for the verdict, `assess` for the
statuses and `figures` for what people are shown. `to_json` and `from_json` store states and minutes; `replay` repeats
any decision from them.
"""

from rollouts.evaluation.clusters import ClusterSums
from rollouts.evaluation.formula_1.advance import advance, replay
from rollouts.evaluation.formula_1.assess import Assessment, MetricStatus, assess
from rollouts.evaluation.formula_1.comparison import figures
from rollouts.evaluation.formula_1.counts import ArmCounts, MinuteCounts
from rollouts.evaluation.formula_1.explanation import explain
from rollouts.evaluation.formula_1.policy import Metric, Policy
from rollouts.evaluation.formula_1.state import FORMULA, State, at_stage, initial_state
from rollouts.evaluation.formula_1.verdict import Verdict, decide
from rollouts.evaluation.formulas import formula_of
from rollouts.evaluation.grid import bin_of, bin_sql
from rollouts.evaluation.intervals import Figures
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.terms import Action, Decision, Reason, Status

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
    "at_stage",
    "bin_of",
    "bin_sql",
    "decide",
    "explain",
    "figures",
    "formula_of",
    "from_json",
    "initial_state",
    "replay",
    "to_json",
]
