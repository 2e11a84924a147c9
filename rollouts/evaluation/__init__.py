"""The statistics of a rollout: conditional e-processes over the counts of closed minutes. Pure, without any framework.

`initial_state` begins, `advance` adds a closed minute, `decide` gives the verdict, `assess` the statuses and `figures`
what people see. `to_json` and `from_json` store states and minutes; `replay` repeats any decision from them. `FORMULA`
numbers these rules; every state and verdict names it.
"""

from rollouts.evaluation.advance import advance, replay
from rollouts.evaluation.assess import Assessment, assess
from rollouts.evaluation.comparison import figures
from rollouts.evaluation.counts import ArmCounts, MinuteCounts, UserCounts
from rollouts.evaluation.explanation import explain
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.policy import Metric, Policy
from rollouts.evaluation.power import Power, Traffic, power
from rollouts.evaluation.state import FORMULA, FORMULAS, State, UnknownFormulaError, at_stage, initial_state
from rollouts.evaluation.statistics.clusters import ClusterSums, MinuteUsers
from rollouts.evaluation.terms import Action, Decision, Reason, Status
from rollouts.evaluation.verdict import Verdict, decide

__all__ = [
    "FORMULA",
    "FORMULAS",
    "Action",
    "ArmCounts",
    "Assessment",
    "ClusterSums",
    "Decision",
    "Metric",
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
    "decide",
    "explain",
    "figures",
    "from_json",
    "initial_state",
    "power",
    "replay",
    "to_json",
]
