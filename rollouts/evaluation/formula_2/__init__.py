"""The second formula: every allocated request counts, whatever its outcome."""

from rollouts.evaluation.clusters import ClusterSums
from rollouts.evaluation.formula_2.advance import advance, replay
from rollouts.evaluation.formula_2.assess import Assessment, MetricStatus, assess
from rollouts.evaluation.formula_2.comparison import figures
from rollouts.evaluation.formula_2.counts import ArmCounts, MinuteCounts, UserCounts
from rollouts.evaluation.formula_2.explanation import explain
from rollouts.evaluation.formula_2.policy import Metric, Policy
from rollouts.evaluation.formula_2.power import Detection, Power, Traffic, power
from rollouts.evaluation.formula_2.state import FORMULA, State, UnknownFormulaError, at_stage, initial_state
from rollouts.evaluation.formula_2.verdict import Verdict, decide, decided
from rollouts.evaluation.intervals import Figures
from rollouts.evaluation.terms import Action, Decision, Reason, Status

__all__ = [
    "FORMULA",
    "Action",
    "ArmCounts",
    "Assessment",
    "ClusterSums",
    "Decision",
    "Detection",
    "Figures",
    "Metric",
    "MetricStatus",
    "MinuteCounts",
    "Policy",
    "Power",
    "Reason",
    "State",
    "Status",
    "Traffic",
    "UnknownFormulaError",
    "UserCounts",
    "Verdict",
    "advance",
    "assess",
    "at_stage",
    "decide",
    "decided",
    "explain",
    "figures",
    "initial_state",
    "power",
    "replay",
]
