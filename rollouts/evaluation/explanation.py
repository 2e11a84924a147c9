from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rollouts.evaluation.assess import Assessment, MetricStatus, assess
from rollouts.evaluation.comparison import figures
from rollouts.evaluation.counts import events_of
from rollouts.evaluation.policy import EXACT, FAIL_AT, MIN_TARGET_REQUESTS, PASS_AT, RATE_COUNT_SIZE, RATES, Metric
from rollouts.evaluation.state import State
from rollouts.evaluation.terms import Action, Status
from rollouts.evaluation.words import about, dollars, milliseconds, share

LABELS: Mapping[Metric, str] = MappingProxyType(
    {
        Metric.UNANSWERED: "Unanswered",
        Metric.ERROR_RATE: "Errors",
        Metric.CONTRACT: "Breaks its schema",
        Metric.TRUNCATED: "Cut off",
        Metric.FALLBACK: "Served by another model",
        Metric.EMPTY: "Empty",
        Metric.STOPPED: "Stopped by the user",
        Metric.LATENCY_P95: "Latency, slowest 5 %",
        Metric.LATENCY_AVERAGE: "Latency, average",
        Metric.COST: "Cost of a request",
    }
)
"""The metrics as people read them, in the order in which they are shown: what happened to answers, then how long they
took and what they cost."""

_WITHOUT_EVENT: Mapping[Metric, str] = MappingProxyType(
    {
        Metric.CONTRACT: "broken",
        Metric.TRUNCATED: "cut off",
        Metric.EMPTY: "empty",
        Metric.FALLBACK: "another model's",
    }
)

_MAX_ESTIMATE = 100_000
_SUSPICIOUS = 0.5
"""The part of the evidence needed, as a logarithm, from which on a difference is mentioned."""


def explain(state: State, metric: Metric, assessment: Assessment | None = None) -> str:
    """Returns at most fifteen words that name no number of the statistics. Pass `assessment` if the state's is already
    known."""
    one, both = (assessment or assess(state)).metrics[metric], pair(state, metric)
    if not one.judged:
        return _not_judged(state, metric, both)
    if one.users_undecided:
        return "Worse by requests, but a few users make most of the difference."
    if not both:
        return "Nothing to compare yet."
    if one.status is Status.FAILING:
        worse = "Worse" if one.evidence >= FAIL_AT[metric] else "Worse for its users"
        return f"{worse}: {both}, certain enough to {consequence(state, metric)}."
    if one.status is Status.PASSING:
        return f"Within its limits: {both}."
    return _undecided(state, one, both)


def pair(state: State, metric: Metric) -> str:
    shown = figures(state, metric)
    if shown.target is None or shown.baseline is None:
        return ""
    return f"{_value(metric, shown.target)} against {_value(metric, shown.baseline)}"


def is_silent(state: State, metric: Metric) -> bool:
    """Returns whether no answer of either version has had an exact signal so far."""
    events = (events_of(arm, metric)[0] for arm in (state.target, state.baseline))
    # A stored verdict of formula 3 names them one by one.
    return metric in EXACT and state.formula != 3 and not any(events)


def no_event(state: State, silent: Sequence[Metric]) -> str:
    *some, last = (word for metric, word in _WITHOUT_EVENT.items() if metric in silent)
    named = f"{', '.join(some)} or {last}" if some else last
    return f"no answer is {named} so far ({_progress(state, silent[0])})"


def consequence(state: State, metric: Metric) -> str:
    return "roll back" if state.policy.action(metric) is Action.ROLL_BACK else "hold"


def _not_judged(state: State, metric: Metric, both: str) -> str:
    then = f": {both}." if both else "."
    if metric is Metric.STOPPED:
        return f"Shown only, never judged{then}"
    if state.policy.action(metric) is Action.IGNORE:
        return f"Ignored by this rollout{then}"
    return "Not judged: no request has a price." if metric is Metric.COST else "Not judged: no answers yet."


def _undecided(state: State, one: MetricStatus, both: str) -> str:
    if one.evidence >= FAIL_AT[one.metric]:
        few = _requests(state, one.metric) < MIN_TARGET_REQUESTS or _is_rare(state, one.metric)
        return f"Looks worse: {both}, on few requests." if few else f"Slightly worse: {both}, too little to act on."
    if one.evidence >= _SUSPICIOUS * FAIL_AT[one.metric]:
        return f"Looks worse: {both}, which is not certain yet."
    return f"No difference seen yet ({_progress(state, one.metric, estimated=one.has_to_pass)})."


def _progress(state: State, metric: Metric, *, estimated: bool = True) -> str:
    number = _requests(state, metric)
    needed = _requests_to_pass(state, metric) if estimated else None
    if needed is None:
        return f"{number:,} request{'' if number == 1 else 's'}"
    return f"{number:,} of about {needed} requests"


def _requests(state: State, metric: Metric) -> int:
    if metric in RATES:
        return events_of(state.target, metric)[1]
    return state.target.priced if metric is Metric.COST else state.target.answered


def _is_rare(state: State, metric: Metric) -> bool:
    return metric in RATES and events_of(state.target, metric)[0] < RATE_COUNT_SIZE


def _requests_to_pass(state: State, metric: Metric) -> str | None:
    safe, number = state.metrics[metric].safe, _requests(state, metric)
    best, needed = max(safe), PASS_AT + math.log(len(safe))
    if best <= 0 or not number:
        return None
    estimate = max(number * needed / best, MIN_TARGET_REQUESTS)
    return about(estimate) if number < estimate <= _MAX_ESTIMATE else None


def _value(metric: Metric, value: float) -> str:
    if metric in RATES:
        return share(value)
    return dollars(value) if metric is Metric.COST else milliseconds(value)
