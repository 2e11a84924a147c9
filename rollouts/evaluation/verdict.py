"""The verdict on an automatic rollout: promote, roll back or wait, with the reason.

A verdict never pauses a rollout, because a paused rollout serves no managed prompt at all. While it waits a person may
promote.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollouts.evaluation.assess import Assessment, assess
from rollouts.evaluation.policy import CONTROLLED_WEIGHT, RATE_COUNT_SIZE
from rollouts.evaluation.quality import QualityAssessment, QualityState, assess_quality
from rollouts.evaluation.quality.assess import Goal
from rollouts.evaluation.quality.sentences import Judged
from rollouts.evaluation.reasons import explain_decision
from rollouts.evaluation.state import State
from rollouts.evaluation.terms import Action, Decision, Reason, Status
from rollouts.states import Stage

OVERDUE_MINUTES = 24 * 60
"""The time after both minima were met when people are notified that a rollout still waits."""

_MIN_COMPARED = (20, 30)
"""The requests of the target and of the baseline in the stage that are needed before missing answers alone roll back.
"""
_MAX_UNCOMPARED = 0.02
"""The share of unanswered requests that is bad without any comparison."""
_HEAVIER = 0.25
"""The share by which the target's requests cost or last more before their load explains anything."""
_GROSSLY_WORSE = (0.10, 4.0, 10)
"""The difference of unanswered requests that holds a rollout: so many points more, so many times as many, and at least
so many requests."""


_DECISIONS = {
    Goal.NOT_BETTER: (Decision.ROLL_BACK, Reason.GOAL_NOT_BETTER),
    Goal.UNDECIDED: (Decision.WAIT, Reason.GOAL_UNDECIDED),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`explanation` is for people. `overdue`: the rollout has waited for more than a day on something else than its
    minima."""

    decision: Decision
    reason: Reason
    explanation: str
    overdue: bool
    assessment: Assessment
    quality: QualityAssessment | None = None


def decide(state: State, stage: Stage, *, elapsed_minutes: float, quality: QualityState | None = None) -> Verdict:
    """Returns the verdict at `stage`, which has run, without pauses, for `elapsed_minutes`.

    If no minute of the stage has been seen, `state` is what `state.at_stage` returns. Promoting from the last stage
    completes the rollout. `quality` is for rollouts with evaluators.
    """
    assessment = assess(state)
    judged = None if quality is None else Judged(quality, assess_quality(quality))
    scores = judged.assessment if judged else None
    decision, reason = decided(state, assessment, stage, elapsed_minutes=elapsed_minutes, quality=scores)
    # A test goes on until it has its verdict, and nobody has to look because of that.
    waits_on_evidence = decision is Decision.WAIT and reason not in (Reason.MINIMUM_DURATION, Reason.GOAL_UNDECIDED)
    return Verdict(
        decision=decision,
        reason=reason,
        explanation=explain_decision(state, assessment, stage, decision, reason, elapsed_minutes, judged),
        overdue=waits_on_evidence and elapsed_minutes >= stage.min_duration_minutes + OVERDUE_MINUTES,
        assessment=assessment,
        quality=scores,
    )


def decided(
    state: State,
    assessment: Assessment,
    stage: Stage,
    *,
    elapsed_minutes: float,
    quality: QualityAssessment | None = None,
) -> tuple[Decision, Reason]:
    if assessment.failing(Action.ROLL_BACK, state):
        return Decision.ROLL_BACK, Reason.METRIC_FAILING
    if quality is not None and quality.action is Action.ROLL_BACK:
        return Decision.ROLL_BACK, Reason.QUALITY_FAILING
    unmet = _minima(state, stage, elapsed_minutes)
    if unmet is not None:
        return unmet
    if assessment.undecided_by_users or (stage.weight < CONTROLLED_WEIGHT and _users_fare_badly(state)):
        return Decision.WAIT, Reason.USERS_UNDECIDED
    if assessment.sample_ratio_alarm:
        return Decision.WAIT, Reason.SAMPLE_RATIO
    if _is_worse_for_all(state):
        return Decision.WAIT, Reason.WORSE_FOR_ALL
    if stage.weight >= 100:
        # The last stage has no baseline to compare with, so the evidence of the stages before decides.
        return Decision.PROMOTE, Reason.NO_CONTROL
    return _by_status(state, assessment, stage, quality)


def _minima(state: State, stage: Stage, elapsed_minutes: float) -> tuple[Decision, Reason] | None:
    served, enough = state.stage_target, state.stage_target.answered >= stage.min_requests
    if not enough and served.requests >= stage.min_requests and 2 * served.unanswered > served.requests:
        return _mostly_unanswered(state), Reason.MINIMUM_UNANSWERED
    if elapsed_minutes < stage.min_duration_minutes:
        return Decision.WAIT, Reason.MINIMUM_DURATION
    return None if enough else (Decision.WAIT, Reason.MINIMUM_REQUESTS)


def _mostly_unanswered(state: State) -> Decision:
    target, baseline = state.stage_target.compared, state.stage_baseline.compared
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

    The cause may be a few users whom no version ever answers, so this only holds the rollout. It holds a tenth of
    harmless rollouts if 3 of 100 users are such, and a hundredth if users differ as usual.
    """
    return state.sticky and _is_grossly_worse(state)


def _is_grossly_worse(state: State) -> bool:
    target, baseline = state.stage_target, state.stage_baseline
    plus, times, least = _GROSSLY_WORSE
    return (
        target.unanswered >= least
        and target.unanswered_share >= baseline.unanswered_share + plus
        and target.unanswered_share >= times * baseline.unanswered_share
    )


def _uncompared(state: State) -> bool:
    """Returns whether the target leaves requests unanswered while no comparison can show it.

    Evidence does not grow while the baseline has next to no requests of its own in this stage (the cache answers all),
    nor before a block closes (requests that never end are counted after the requests beside them).
    """
    if state.policy.unanswered is Action.IGNORE:
        return False
    target, baseline = state.stage_target, state.stage_baseline
    enough = target.unanswered >= RATE_COUNT_SIZE and target.unanswered_share > _MAX_UNCOMPARED
    return enough and (baseline.compared.requests < _MIN_COMPARED[1] or _is_grossly_worse(state))


def _is_worse_for_all(state: State) -> bool:
    """Returns whether both arms together leave more requests unanswered than the config did before.

    The target may or may not be the cause, by a limit that both share, so this only holds the rollout. It cannot be
    the cause of what was so before its stage, unless its requests use up so much more than the baseline's.
    """
    if state.policy.unanswered is Action.IGNORE:
        return False
    if state.formula == 3:
        return state.together.is_worse
    return state.rise.stage.is_worse or (state.together.is_worse and _load_explains(state))


def _load_explains(state: State) -> bool:
    """Returns whether the target's requests cost or last so much more that they raise the load by the share of requests
    that go unanswered now and did not on the day before."""
    both = (state.stage_target, state.stage_baseline)
    requests, unanswered = sum(one.requests for one in both), sum(one.unanswered for one in both)
    more = unanswered / requests - (state.usual_share or 0.0) if requests else 0.0
    heavier = max(_times(state, "cost_usd", "priced"), _times(state, "latency_ms", "answered")) - 1
    return heavier >= _HEAVIER and heavier * state.weights[state.stage - 1] / 100 >= more


def _times(state: State, total: str, number: str) -> float:
    """Returns how many times the baseline's mean the target's is; 1 if either is unknown."""
    arms = (state.target, state.baseline)
    target, baseline = (float(getattr(arm, total)) / (getattr(arm, number) or 1) for arm in arms)
    return target / baseline if target and baseline else 1.0


def _by_status(
    state: State, assessment: Assessment, stage: Stage, quality: QualityAssessment | None
) -> tuple[Decision, Reason]:
    if assessment.status is Status.FAILING:
        return Decision.WAIT, Reason.METRIC_FAILING
    if quality is not None and (held := _held_by(quality)) is not None:
        return Decision.WAIT, held
    if _uncompared(state):
        return Decision.WAIT, Reason.NO_COMPARISON
    if quality is not None and quality.goal is not None and quality.goal.verdict is not Goal.BETTER:
        return _DECISIONS[quality.goal.verdict]
    is_test = quality is not None and quality.goal is not None
    is_controlled = is_test or stage.weight >= CONTROLLED_WEIGHT
    if assessment.status is Status.PASSING:
        if is_controlled and quality is not None and quality.required:
            return Decision.WAIT, Reason.QUALITY_INCONCLUSIVE
        return Decision.PROMOTE, Reason.GOAL_BETTER if is_test else Reason.PASSING
    if not is_controlled:
        return Decision.PROMOTE, Reason.NO_FAILURE
    return Decision.WAIT, Reason.INCONCLUSIVE


def _held_by(quality: QualityAssessment) -> Reason | None:
    if quality.action is not None:
        return Reason.QUALITY_FAILING
    return Reason.QUALITY_UNSCORED if quality.unscored else None
