"""The first formula, frozen: rollouts that began with it are judged by it to their end, and its decisions can be
replayed.

It compares minutes by the time of arrival and knows only requests that ended in an answer or an error.
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
from rollouts.evaluation.intervals import Figures
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
    "decide",
    "explain",
    "figures",
    "initial_state",
    "replay",
]
