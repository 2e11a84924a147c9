"""The statistics of a rollout: conditional e-processes over the counts of closed minutes. Pure, without any framework.

`initial_state` begins, `advance` adds every closed minute, `decide` gives the verdict, `assess` the statuses and
`figures` what people are shown. `to_json` and `from_json` store states and minutes; `replay` repeats any decision from
them. `FORMULA` is the number of these rules, which every state and verdict names.
"""

from rollouts.evaluation import formula_2
from rollouts.evaluation.clusters import ClusterSums
from rollouts.evaluation.grid import bin_of, bin_sql
from rollouts.evaluation.intervals import Figures
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.terms import Action, Decision, Reason, Status

__all__ = [
    "Action",
    "ClusterSums",
    "Decision",
    "Figures",
    "Reason",
    "Status",
    "bin_of",
    "bin_sql",
    "formula_2",
    "from_json",
    "to_json",
]
