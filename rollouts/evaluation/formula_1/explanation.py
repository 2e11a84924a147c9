"""Sentences for people that say how one metric stands."""

from __future__ import annotations

from rollouts.evaluation.formula_1.assess import assess
from rollouts.evaluation.formula_1.comparison import figures
from rollouts.evaluation.formula_1.policy import FAIL_AT, PASS_AT, Metric
from rollouts.evaluation.formula_1.state import State
from rollouts.evaluation.terms import Action, Status
from rollouts.evaluation.words import odds


def explain(state: State, metric: Metric) -> str:
    """Returns one sentence on the metric's standing."""
    one, shown = assess(state).metrics[metric], figures(state, metric)
    name = _NAMES[metric]
    if not one.judged:
        ignored = state.policy.action(metric) is Action.IGNORE
        return f"The {name} is {'ignored by this rollout' if ignored else 'not judged: it has no values'}."
    compared = f"The {name} of the target is {_shown(metric, shown.target)} against {_shown(metric, shown.baseline)}"
    if one.status is Status.FAILING:
        return f"{compared}: worse, with evidence {odds(one.evidence)} where {odds(FAIL_AT[metric])} decides."
    if one.status is Status.PASSING:
        return f"{compared}: harmless, with evidence {odds(one.safety)} where {odds(PASS_AT)} decides."
    return (
        f"{compared}: undecided, with evidence {odds(one.evidence)} of {odds(FAIL_AT[metric])} that it is worse and"
        f" {odds(one.safety)} of {odds(PASS_AT)} that it is harmless."
    )


_NAMES = {
    Metric.ERROR_RATE: "error rate",
    Metric.LATENCY_P95: "95th percentile of latency",
    Metric.LATENCY_AVERAGE: "average latency",
    Metric.COST: "cost per request",
}


def _shown(metric: Metric, value: float | None) -> str:
    if value is None:
        return "unknown"
    if metric is Metric.ERROR_RATE:
        return f"{value * 100:.2f} %"
    return f"${value:.6f}" if metric is Metric.COST else f"{value:.0f} ms"
