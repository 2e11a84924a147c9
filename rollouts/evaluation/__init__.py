"""The statistics of a rollout: conditional e-processes over the counts of closed minutes. Pure, without any framework.

`formula_of(number)` returns a formula, a module: `initial_state` at the start, `advance` with every closed minute, then
`decide` for the verdict, `assess` for the statuses and `figures` for what people are shown. `to_json` and `from_json`
store states and minutes; `replay` repeats any decision from them.
"""

from rollouts.evaluation import formula_1, formula_2
from rollouts.evaluation.clusters import ClusterSums
from rollouts.evaluation.formulas import CURRENT, formula_of
from rollouts.evaluation.grid import bin_of, bin_sql
from rollouts.evaluation.intervals import Figures
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.terms import Action, Decision, Reason, Status

__all__ = [
    "CURRENT",
    "Action",
    "ClusterSums",
    "Decision",
    "Figures",
    "Reason",
    "Status",
    "bin_of",
    "bin_sql",
    "formula_1",
    "formula_2",
    "formula_of",
    "from_json",
    "to_json",
]
