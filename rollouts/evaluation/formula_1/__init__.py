"""The first formula, frozen: rollouts that began with it are judged by it to their end, and what it decided can be
replayed. It compares minutes by the time of arrival and knows only requests that ended in an answer or an error."""

from rollouts.evaluation.formula_1.advance import advance, replay
from rollouts.evaluation.formula_1.assess import Assessment, MetricStatus, Status, assess
from rollouts.evaluation.formula_1.comparison import Figures, figures
from rollouts.evaluation.formula_1.counts import ArmCounts, ClusterSums, MinuteCounts
from rollouts.evaluation.formula_1.explanation import explain
from rollouts.evaluation.formula_1.policy import Action, Metric, Policy
from rollouts.evaluation.formula_1.state import FORMULA, State, initial_state
from rollouts.evaluation.formula_1.verdict import Decision, Reason, Verdict, decide

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
