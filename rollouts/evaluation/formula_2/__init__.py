"""The second formula: every request that was allocated counts, whatever became of it."""

from rollouts.evaluation.formula_2.advance import advance, replay
from rollouts.evaluation.formula_2.assess import Assessment, MetricStatus, Status, assess
from rollouts.evaluation.formula_2.comparison import Figures, figures
from rollouts.evaluation.formula_2.counts import ArmCounts, ClusterSums, MinuteCounts
from rollouts.evaluation.formula_2.explanation import explain
from rollouts.evaluation.formula_2.policy import Action, Metric, Policy
from rollouts.evaluation.formula_2.state import FORMULA, State, initial_state
from rollouts.evaluation.formula_2.verdict import Decision, Reason, Verdict, decide

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
    "decide",
    "explain",
    "figures",
    "initial_state",
    "replay",
]
