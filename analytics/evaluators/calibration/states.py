from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from analytics.evaluators.calibration.statistics import Confusion, DifferentialBias

MIN_LABELS = 100
MIN_LABELS_OF_EACH = 40
MIN_KAPPA = 0.4
MAX_DIFFERENTIAL_BIAS = 0.05
MAX_DIFFERENTIAL_BIAS_LIMIT = 0.10
DRIFT_EVIDENCE = 20.0
LABELS_LAST = timedelta(days=30)


class State(StrEnum):
    UNCALIBRATED = "uncalibrated"
    CALIBRATED = "calibrated"
    STALE = "stale"
    DRIFTED = "drifted"


class Missing(StrEnum):
    """What keeps an evaluator from being calibrated."""

    LABELS = "labels"
    GROUPS = "groups"
    KAPPA = "kappa"
    DIFFERENTIAL_BIAS = "differential_bias"
    RECENT_LABELS = "recent_labels"
    JUDGE_MODEL = "judge_model"
    STEADY_VERDICTS = "steady_verdicts"


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that decide the state. `models` are the judge's models, for labelled answers and most recently; unknown
    models are left out. `drift` is the evidence that verdicts changed in one direction."""

    confusion: Confusion
    differences: Sequence[DifferentialBias]
    labelled_at: datetime | None
    models: Collection[str] = ()
    drift: float = 1.0


@dataclass(frozen=True, slots=True)
class Standing:
    """The calibration state of an evaluator. An evaluator that has drifted decides nothing.

    `margin_scale` is the least share of a true difference that its scores show, the lower limit of sensitivity +
    specificity - 1. It is None unless the evaluator is calibrated.
    """

    state: State
    missing: Sequence[Missing]
    margin_scale: float | None


def standing_of(facts: Facts, now: datetime) -> Standing:
    state, missing = state_of(facts, now)
    shown = facts.confusion.informedness
    if state is not State.CALIBRATED or shown is None or shown.low is None or shown.low <= 0:
        return Standing(state, missing, None)
    return Standing(state, missing, min(shown.low, 1.0))


def valid_until(facts: Facts) -> datetime | None:
    return None if facts.labelled_at is None else facts.labelled_at + LABELS_LAST


def state_of(facts: Facts, now: datetime) -> tuple[State, list[Missing]]:
    lacking, outdated = _lacking(facts), _outdated(facts, now)
    if facts.drift >= DRIFT_EVIDENCE:
        return State.DRIFTED, [*lacking, *outdated, Missing.STEADY_VERDICTS]
    if lacking:
        return State.UNCALIBRATED, [*lacking, *outdated]
    return (State.STALE, outdated) if outdated else (State.CALIBRATED, [])


def _lacking(facts: Facts) -> list[Missing]:
    kappa, compared = facts.confusion.kappa, [one for one in facts.differences if one.answers >= MIN_LABELS_OF_EACH]
    is_agreed = kappa is not None and kappa.low is not None and kappa.low >= MIN_KAPPA
    holds = {
        Missing.LABELS: facts.confusion.answers >= MIN_LABELS,
        Missing.GROUPS: bool(compared),
        Missing.KAPPA: is_agreed,
        Missing.DIFFERENTIAL_BIAS: bool(compared) and all(map(_is_fair, compared)),
    }
    return [one for one, is_met in holds.items() if not is_met]


def _outdated(facts: Facts, now: datetime) -> list[Missing]:
    until = valid_until(facts)
    holds = {
        Missing.RECENT_LABELS: until is None or now <= until,
        Missing.JUDGE_MODEL: len(facts.models) <= 1,
    }
    return [one for one, is_met in holds.items() if not is_met]


def _is_fair(difference: DifferentialBias) -> bool:
    bias = difference.bias
    if bias.low is None or bias.high is None or abs(bias.value) >= MAX_DIFFERENTIAL_BIAS:
        return False
    return max(abs(bias.low), abs(bias.high)) < MAX_DIFFERENTIAL_BIAS_LIMIT
