"""Sentences for people that say how one metric stands."""

from __future__ import annotations

from collections.abc import Mapping

from rollouts.evaluation.assess import Assessment, MetricStatus, assess
from rollouts.evaluation.comparison import figures
from rollouts.evaluation.policy import FAIL_AT, PASS_AT, RATES, Metric
from rollouts.evaluation.state import State
from rollouts.evaluation.terms import Action, Status
from rollouts.evaluation.words import odds


def explain(state: State, metric: Metric, assessment: Assessment | None = None) -> str:
    """Returns one or two sentences on the metric's standing. `assessment` is passed where the caller already has that
    of the state."""
    one, shown = (assessment or assess(state)).metrics[metric], figures(state, metric)
    name = _NAMES[metric]
    if not one.judged:
        ignored = state.policy.action(metric) is Action.IGNORE
        return f"The {name} is {'ignored by this rollout' if ignored else 'not judged: it has no values'}."
    compared = f"The {name} of the target is {_shown(metric, shown.target)} against {_shown(metric, shown.baseline)}"
    return f"{compared}: {_standing(one)}{_why(state, one)}"


def named_reasons(reasons: Mapping[str, int]) -> str:
    """Returns the reasons for missing answers, the most frequent first, as `model_not_found 12, client_left 3`."""
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} {count}" for reason, count in ordered if count)


def _standing(one: MetricStatus) -> str:
    fail_at = FAIL_AT[one.metric]
    if one.users_undecided:
        return (
            f"worse by its requests, with evidence {odds(one.evidence)} where {odds(fail_at)} decides, but a few users"
            f" make most of the difference: counted once each, they give {odds(one.user_evidence or 0.0)}."
        )
    if one.status is Status.FAILING and one.evidence < fail_at:
        found = odds(one.user_evidence or 0.0)
        return f"worse for its users, counted once each, with evidence {found} where {odds(fail_at)} decides."
    if one.status is Status.FAILING:
        return f"worse, with evidence {odds(one.evidence)} where {odds(fail_at)} decides."
    if one.status is Status.PASSING:
        return f"harmless, with evidence {odds(one.safety)} where {odds(PASS_AT)} decides."
    return (
        f"undecided, with evidence {odds(one.evidence)} of {odds(fail_at)} that it is worse and"
        f" {odds(one.safety)} of {odds(PASS_AT)} that it is harmless."
    )


def _why(state: State, one: MetricStatus) -> str:
    if one.metric is not Metric.UNANSWERED or one.status is not Status.FAILING or not state.target.reasons:
        return ""
    return f" The target's reasons: {named_reasons(state.target.reasons)}."


_NAMES = {
    Metric.UNANSWERED: "rate of unanswered requests",
    Metric.ERROR_RATE: "error rate",
    Metric.LATENCY_P95: "95th percentile of latency",
    Metric.LATENCY_AVERAGE: "average latency",
    Metric.COST: "cost per request",
    Metric.CONTRACT: "share of answers that break their schema",
    Metric.TRUNCATED: "share of answers that are cut off",
    Metric.FALLBACK: "share of answers of another model",
    Metric.EMPTY: "share of empty answers",
    Metric.STOPPED: "share of answers that the client stopped",
}


def _shown(metric: Metric, value: float | None) -> str:
    if value is None:
        return "unknown"
    if metric in RATES:
        return f"{value * 100:.2f} %"
    return f"${value:.6f}" if metric is Metric.COST else f"{value:.0f} ms"
