"""The statistics of a rollout: conditional e-processes over the counts of closed minutes. Pure, without any framework.

`initial_state` begins, `advance` adds every closed minute, `decide` gives the verdict, `assess` the statuses and
`figures` what people are shown. `to_json` and `from_json` store states and minutes; `replay` repeats any decision from
them. `FORMULA` is the number of these rules, which every state and verdict names.
"""

from rollouts.evaluation.advance import advance, replay
from rollouts.evaluation.assess import Assessment, MetricStatus, assess
from rollouts.evaluation.comparison import figures
from rollouts.evaluation.counts import ArmCounts, MinuteCounts, UserCounts
from rollouts.evaluation.explanation import explain
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.policy import Metric, Policy
from rollouts.evaluation.power import Detection, Power, Traffic, power
from rollouts.evaluation.state import FORMULA, State, UnknownFormulaError, at_stage, initial_state
from rollouts.evaluation.statistics.clusters import ClusterSums, MinuteUsers
from rollouts.evaluation.statistics.grid import bin_of
from rollouts.evaluation.statistics.intervals import Figures
from rollouts.evaluation.terms import Action, Decision, Reason, Status
from rollouts.evaluation.verdict import Verdict, decide, decided

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
    "MinuteUsers",
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
    "bin_of",
    "decide",
    "decided",
    "explain",
    "figures",
    "from_json",
    "initial_state",
    "power",
    "replay",
    "to_json",
]
