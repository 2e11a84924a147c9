"""The verdict on an automatic rollout: promote, roll back or wait, with the reason.

A verdict never pauses a rollout, because a paused rollout serves no managed prompt at all. While it waits a person may
promote.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollouts.evaluation.assess import Assessment, assess
from rollouts.evaluation.explanation import explain, named_reasons
from rollouts.evaluation.policy import CONTROLLED_WEIGHT, RATE_COUNT_SIZE, Metric
from rollouts.evaluation.state import State
from rollouts.evaluation.terms import Action, Decision, Reason, Status
from rollouts.evaluation.words import odds
from rollouts.states import Stage

OVERDUE_MINUTES = 24 * 60
"""The time after both minima were met when people are notified that a rollout still waits."""

_MIN_COMPARED = (20, 30)
"""The requests of the target and of the baseline in the stage that are needed before missing answers alone roll back.
"""
_MAX_UNCOMPARED = 0.02
"""The share of unanswered requests that is bad without any comparison."""
_GROSSLY_WORSE = (0.10, 4.0, 10)
"""The difference of unanswered requests that holds a rollout: so many points more, so many times as many, and at least
so many requests."""


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
    """Returns the verdict at `stage`, which has been running, without its pauses, for so many minutes. Where no minute
    of the stage has been seen, `state` is what `state.at_stage` returns. Promoting from the last stage completes the
    rollout."""
    assessment = assess(state)
    decision, reason = decided(state, assessment, stage, elapsed_minutes=elapsed_minutes)
    waits_on_evidence = decision is Decision.WAIT and reason is not Reason.MINIMUM_DURATION
    return Verdict(
        decision=decision,
        reason=reason,
        explanation=_explanation(state, assessment, stage, decision, reason, elapsed_minutes),
        overdue=waits_on_evidence and elapsed_minutes >= stage.min_duration_minutes + OVERDUE_MINUTES,
        assessment=assessment,
    )


def decided(state: State, assessment: Assessment, stage: Stage, *, elapsed_minutes: float) -> tuple[Decision, Reason]:
    """Returns the decision and its reason without sentences, for callers that need many of them."""
    if assessment.failing(Action.ROLL_BACK, state):
        return Decision.ROLL_BACK, Reason.METRIC_FAILING
    unmet = _minima(state, stage, elapsed_minutes)
    if unmet is not None:
        return unmet
    if assessment.undecided_by_users or (stage.weight < CONTROLLED_WEIGHT and _users_fare_badly(state)):
        return Decision.WAIT, Reason.USERS_UNDECIDED
    if assessment.sample_ratio_alarm:
        return Decision.WAIT, Reason.SAMPLE_RATIO
    if stage.weight >= 100:
        # The last stage has no baseline to compare with, so the evidence of the stages before decides.
        return Decision.PROMOTE, Reason.NO_CONTROL
    return _by_status(state, assessment, stage)


def _minima(state: State, stage: Stage, elapsed_minutes: float) -> tuple[Decision, Reason] | None:
    """Returns the decision while a minimum is not met, or None once both are. Only answered requests count towards the
    minimum."""
    served, enough = state.stage_target, state.stage_target.answered >= stage.min_requests
    if not enough and served.requests >= stage.min_requests and 2 * served.unanswered > served.requests:
        return _mostly_unanswered(state), Reason.MINIMUM_UNANSWERED
    if elapsed_minutes < stage.min_duration_minutes:
        return Decision.WAIT, Reason.MINIMUM_DURATION
    return None if enough else (Decision.WAIT, Reason.MINIMUM_REQUESTS)


def _mostly_unanswered(state: State) -> Decision:
    """Returns whether the target itself leaves most requests without an answer, beyond doubt."""
    target, baseline = state.stage_target, state.stage_baseline
    least, least_baseline = _MIN_COMPARED
    its_own = (
        target.requests >= least
        and baseline.requests >= least_baseline
        and 2 * baseline.unanswered_share <= target.unanswered_share
    )
    # Under sticky allocation the cause may be a few users who never get an answer from any version.
    if its_own and not state.sticky and state.policy.unanswered is Action.ROLL_BACK:
        return Decision.ROLL_BACK
    return Decision.WAIT


def _users_fare_badly(state: State) -> bool:
    """Returns whether a target of sticky allocation leaves so many more requests unanswered that it should get no more
    users.

    The cause may be a few users who never get an answer from any version, so this only holds the rollout. It holds a
    tenth of harmless rollouts where 3 of 100 users are such, and a hundredth where users differ as usual.
    """
    return state.sticky and _is_grossly_worse(state)


def _is_grossly_worse(state: State) -> bool:
    """Returns whether the target leaves far more requests of the stage unanswered than the baseline, compared or
    not."""
    target, baseline = state.stage_target, state.stage_baseline
    plus, times, least = _GROSSLY_WORSE
    return (
        target.unanswered >= least
        and target.unanswered_share >= baseline.unanswered_share + plus
        and target.unanswered_share >= times * baseline.unanswered_share
    )


def _uncompared(state: State) -> bool:
    """Returns whether the target leaves requests unanswered while no comparison can show it.

    Evidence does not grow while the baseline has next to no requests of its own in this stage, for example when the
    cache answers all of them, nor before a block closes, for example when requests that never end are counted after the
    requests beside them.
    """
    if state.policy.unanswered is Action.IGNORE:
        return False
    target, baseline = state.stage_target, state.stage_baseline
    enough = target.unanswered >= RATE_COUNT_SIZE and target.unanswered_share > _MAX_UNCOMPARED
    return enough and (baseline.requests < _MIN_COMPARED[1] or _is_grossly_worse(state))


def _by_status(state: State, assessment: Assessment, stage: Stage) -> tuple[Decision, Reason]:
    if assessment.status is Status.FAILING:
        return Decision.WAIT, Reason.METRIC_FAILING
    if _uncompared(state):
        return Decision.WAIT, Reason.NO_COMPARISON
    if assessment.status is Status.PASSING:
        return Decision.PROMOTE, Reason.PASSING
    if stage.weight < CONTROLLED_WEIGHT:
        return Decision.PROMOTE, Reason.NO_FAILURE
    return Decision.WAIT, Reason.INCONCLUSIVE


def _explanation(
    state: State, assessment: Assessment, stage: Stage, decision: Decision, reason: Reason, elapsed_minutes: float
) -> str:
    match reason:
        case Reason.MINIMUM_DURATION:
            return f"Wait: {elapsed_minutes:.0f} of {stage.min_duration_minutes} minutes of this stage have passed."
        case Reason.MINIMUM_REQUESTS:
            return _minimum_requests(state, stage)
        case Reason.NO_CONTROL:
            return "Promote: no baseline is left to compare with, and nothing failed before."
        case Reason.PASSING:
            return "Promote: every metric passes."
        case Reason.NO_FAILURE:
            return f"Promote: no metric fails, which is enough below {CONTROLLED_WEIGHT} %."
        case _:
            opening = "Roll back." if decision is Decision.ROLL_BACK else "Hold at this weight."
            return f"{opening} {_grounds(state, assessment, decision, reason)}"


def _grounds(state: State, assessment: Assessment, decision: Decision, reason: Reason) -> str:
    """Returns the sentence that says why the rollout does not advance."""
    if reason is Reason.MINIMUM_UNANSWERED:
        return _unanswered(state)
    if reason is Reason.NO_COMPARISON:
        few = state.stage_baseline.requests < _MIN_COMPARED[1]
        lacking = "The baseline has too few requests in this stage" if few else "There are too few requests at one time"
        return f"{lacking} to compare with. {_unanswered(state)}"
    if reason is Reason.SAMPLE_RATIO:
        return (
            f"The target's share of traffic cannot be {state.sample_ratio.weight} %"
            f" (evidence {odds(state.sample_ratio.evidence)}), so records are lost or misattributed."
        )
    if reason is Reason.USERS_UNDECIDED and not assessment.undecided_by_users:
        return f"{_unanswered(state)} That may be the version or a few of its users."
    return " ".join(explain(state, metric, assessment) for metric in _named(state, assessment, decision, reason))


def _named(state: State, assessment: Assessment, decision: Decision, reason: Reason) -> list[Metric]:
    """Returns the metrics that the decision rests on."""
    if reason is Reason.METRIC_FAILING:
        return assessment.failing(Action.ROLL_BACK if decision is Decision.ROLL_BACK else Action.HOLD, state)
    if reason is Reason.USERS_UNDECIDED:
        return assessment.undecided_by_users
    return [one.metric for one in assessment.metrics.values() if one.judged and one.status is Status.INCONCLUSIVE]


def _unanswered(state: State) -> str:
    target, baseline = state.stage_target, state.stage_baseline
    text = (
        f"Of the target's {target.requests} requests of this stage {target.unanswered} went without an answer, of the"
        f" baseline's {baseline.requests} {baseline.unanswered}."
    )
    reasons = named_reasons(state.target.reasons)
    return f"{text} The target's reasons so far: {reasons}." if reasons else text


def _minimum_requests(state: State, stage: Stage) -> str:
    served = state.stage_target
    besides = f"; {served.unanswered} more went without an answer" if served.unanswered else ""
    return f"Wait: the target answered {served.answered} of {stage.min_requests} requests of this stage{besides}."
