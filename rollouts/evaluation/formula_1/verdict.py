"""The verdict on an automatic rollout: promote, roll back or wait, with the reason.

A verdict never pauses a rollout, because a paused rollout serves no managed prompt at all. While it waits a person
may promote.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollouts.evaluation.formula_1.assess import Assessment, assess
from rollouts.evaluation.formula_1.explanation import explain
from rollouts.evaluation.formula_1.policy import CONTROLLED_WEIGHT
from rollouts.evaluation.formula_1.state import State
from rollouts.evaluation.terms import Action, Decision, Reason, Status
from rollouts.evaluation.words import odds
from rollouts.states import Stage

OVERDUE_MINUTES = 24 * 60
"""The time after both minima were met when people are notified that a rollout still waits."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict. `explanation` is for people. `overdue` means that the rollout has waited for more than a day on
    something else than its minima."""

    decision: Decision
    reason: Reason
    explanation: str
    overdue: bool
    assessment: Assessment


def decide(state: State, stage: Stage, *, elapsed_minutes: float) -> Verdict:
    """Returns the verdict at `stage`, which has been running, without its pauses, for so many minutes. Promoting
    from the last stage completes the rollout."""
    assessment = assess(state)
    decision, reason = _decision(state, assessment, stage, elapsed_minutes)
    waits_on_evidence = decision is Decision.WAIT and reason is not Reason.MINIMUM_DURATION
    return Verdict(
        decision=decision,
        reason=reason,
        explanation=_explanation(state, assessment, stage, decision, reason, elapsed_minutes),
        overdue=waits_on_evidence and elapsed_minutes >= stage.min_duration_minutes + OVERDUE_MINUTES,
        assessment=assessment,
    )


def _decision(state: State, assessment: Assessment, stage: Stage, elapsed_minutes: float) -> tuple[Decision, Reason]:
    if assessment.failing(Action.ROLL_BACK, state):
        return Decision.ROLL_BACK, Reason.METRIC_FAILING
    if elapsed_minutes < stage.min_duration_minutes:
        return Decision.WAIT, Reason.MINIMUM_DURATION
    if state.stage_requests < stage.min_requests:
        return Decision.WAIT, Reason.MINIMUM_REQUESTS
    if assessment.sample_ratio_alarm:
        return Decision.WAIT, Reason.SAMPLE_RATIO
    if stage.weight >= 100:
        # The last stage has no baseline to compare with, so the evidence of the stages before decides.
        return Decision.PROMOTE, Reason.NO_CONTROL
    if assessment.status is Status.FAILING:
        return Decision.WAIT, Reason.METRIC_FAILING
    if assessment.status is Status.PASSING:
        return Decision.PROMOTE, Reason.PASSING
    if stage.weight < CONTROLLED_WEIGHT:
        return Decision.PROMOTE, Reason.NO_FAILURE
    return Decision.WAIT, Reason.INCONCLUSIVE


def _explanation(
    state: State, assessment: Assessment, stage: Stage, decision: Decision, reason: Reason, elapsed_minutes: float
) -> str:
    match reason:
        case Reason.METRIC_FAILING:
            action = Action.ROLL_BACK if decision is Decision.ROLL_BACK else Action.HOLD
            opening = "Roll back." if decision is Decision.ROLL_BACK else "Hold at this weight."
            return " ".join([opening, *(explain(state, metric) for metric in assessment.failing(action, state))])
        case Reason.MINIMUM_DURATION:
            return f"Wait: {elapsed_minutes:.0f} of {stage.min_duration_minutes} minutes of this stage have passed."
        case Reason.MINIMUM_REQUESTS:
            return f"Wait: the target served {state.stage_requests} of {stage.min_requests} requests of this stage."
        case Reason.SAMPLE_RATIO:
            return (
                f"Hold at this weight: the target's share of traffic cannot be {state.sample_ratio.weight} %"
                f" (evidence {odds(state.sample_ratio.evidence)}), so records are lost or misattributed."
            )
        case Reason.INCONCLUSIVE:
            open_metrics = [
                one.metric for one in assessment.metrics.values() if one.judged and one.status is Status.INCONCLUSIVE
            ]
            return " ".join(["Hold at this weight.", *(explain(state, metric) for metric in open_metrics)])
        case Reason.NO_CONTROL:
            return "Promote: no baseline is left to compare with, and nothing failed before."
        case Reason.PASSING:
            return "Promote: every metric passes."
    return f"Promote: no metric fails, which is enough below {CONTROLLED_WEIGHT} %."
