from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rollouts.evaluation.assess import Assessment
from rollouts.evaluation.explanation import LABELS, is_silent, no_event, pair
from rollouts.evaluation.policy import MIN_TARGET_REQUESTS, Metric
from rollouts.evaluation.quality.sentences import (
    Judged,
    failing_pairs,
    failing_step,
    goal_gain,
    goal_sentence,
    needs_labels,
    not_passing,
    stuck_step,
    unscored_shares,
)
from rollouts.evaluation.state import State
from rollouts.evaluation.terms import Action, Decision, Reason, Status
from rollouts.evaluation.words import named_reasons, share
from rollouts.states import Stage

_FAILED = "Look at its failed requests and mend the version"
_CHOOSE = "Look at its failed requests, then promote or roll back by hand."
_AGAIN = "before you roll it out again."
_SET_PRICE = "It will not pass by waiting: set a price for the model that has none"
_FASTER = "Choose a faster model or a shorter prompt"

_NEXT: Mapping[Metric, str] = MappingProxyType(
    {
        Metric.UNANSWERED: _FAILED,
        Metric.ERROR_RATE: _FAILED,
        Metric.CONTRACT: "Read the answers that break the schema and mend the prompt or the schema",
        Metric.TRUNCATED: "Let the version write longer answers, or ask it for shorter ones",
        Metric.FALLBACK: "Check why the version's own model did not serve its requests",
        Metric.EMPTY: "Look at the requests with empty answers and mend the version",
        Metric.LATENCY_P95: _FASTER,
        Metric.LATENCY_AVERAGE: _FASTER,
        Metric.COST: "Choose a cheaper model or a shorter prompt",
    }
)
"""The next step after a metric has failed."""


def explain_decision(
    state: State,
    assessment: Assessment,
    stage: Stage,
    decision: Decision,
    reason: Reason,
    elapsed_minutes: float,
    quality: Judged | None = None,
) -> str:
    return _SENTENCES[reason](_Case(state, assessment, stage, decision, elapsed_minutes, quality))


@dataclass(frozen=True, slots=True)
class _Case:
    state: State
    assessment: Assessment
    stage: Stage
    decision: Decision
    elapsed_minutes: float
    quality: Judged | None

    @property
    def rolls_back(self) -> bool:
        return self.decision is Decision.ROLL_BACK

    def pairs(self, metrics: list[Metric]) -> str:
        known = ((LABELS[metric], pair(self.state, metric)) for metric in metrics)
        return "; ".join(f"{name}: {both}" if both else name for name, both in known)

    @property
    def unanswered(self) -> str:
        target, baseline = self.state.stage_target, self.state.stage_baseline
        text = (
            f"{target.unanswered:,} of the target's {target.requests:,} requests of this stage went unanswered,"
            f" and {baseline.unanswered:,} of the baseline's {baseline.requests:,}."
        )
        return f"{text}{self.causes}"

    @property
    def causes(self) -> str:
        found = named_reasons(self.state.target.reasons)
        return f" The target's reasons so far: {found}." if found else ""


def _metric_failing(case: _Case) -> str:
    failing = case.assessment.failing(Action.ROLL_BACK if case.rolls_back else Action.HOLD, case.state)
    metrics = [metric for metric in LABELS if metric in failing]
    if not metrics:
        return f"A metric fails. {_CHOOSE}"
    causes = case.causes if Metric.UNANSWERED in metrics else ""
    certain = f"Certain enough to {'roll back' if case.rolls_back else 'hold'}."
    step = (
        f"{_NEXT[metrics[0]]} {_AGAIN}" if case.rolls_back else f"{_NEXT[metrics[0]]}, or promote by hand to accept it."
    )
    return f"{case.pairs(metrics)}. {certain}{causes} {step}"


def _minimum_unanswered(case: _Case) -> str:
    return f"{case.unanswered} {f'{_FAILED} {_AGAIN}' if case.rolls_back else _CHOOSE}"


def _minimum_duration(case: _Case) -> str:
    # Rounded up, an unfinished minute would count as finished.
    return (
        f"{math.floor(case.elapsed_minutes)} of {case.stage.min_duration_minutes:,} minutes of this stage have passed."
        " Nothing to do yet."
    )


def _minimum_requests(case: _Case) -> str:
    served = case.state.stage_target
    besides = f"; {served.unanswered:,} more went unanswered" if served.unanswered else ""
    return (
        f"The target answered {served.answered:,} of {case.stage.min_requests:,} requests of this stage{besides}."
        " Wait for more requests, or promote by hand."
    )


def _users_undecided(case: _Case) -> str:
    if metrics := case.assessment.undecided_by_users:
        return (
            f"{case.pairs(metrics)}, but a few users make most of the difference."
            " Look at the requests of these users, then promote or roll back by hand."
        )
    return f"{case.unanswered} That may be the version or a few of its users. {_CHOOSE}"


def _no_comparison(case: _Case) -> str:
    return f"Too few requests came at one time to compare the versions. {case.unanswered} {_CHOOSE}"


def _sample_ratio(case: _Case) -> str:
    found = case.state.sample_ratio
    return (
        f"The target has {found.target:,} of {found.target + found.baseline:,} records, but gets {found.weight} % of"
        " the traffic: records are missing. Check that every host of the gateway delivers its records."
    )


def _worse_for_all(case: _Case) -> str:
    target, baseline, usual = case.state.stage_target, case.state.stage_baseline, case.state.usual
    requests = target.requests + baseline.requests
    now = (target.unanswered + baseline.unanswered) / requests if requests else 0.0
    return (
        f"Both versions leave requests unanswered: {share(now)} in this stage, {share(usual.unanswered_share)} on the"
        " day before. Look at the provider and at used-up limits; it goes on by itself after as long without them."
    )


def _inconclusive(case: _Case) -> str:
    found = case.assessment.metrics
    open_ones = [
        metric
        for metric in LABELS
        if found[metric].judged and found[metric].has_to_pass and found[metric].status is Status.INCONCLUSIVE
    ]
    silent = [metric for metric in open_ones if is_silent(case.state, metric)]
    texts = [LABELS[metric] for metric in open_ones if metric not in silent]
    if silent:
        texts.append(no_event(case.state, silent))
    quality = case.quality if case.quality is not None and case.quality.assessment.required else None
    if quality is not None:
        texts.append(f"the answers by {not_passing(quality)}")
    stuck = [_SET_PRICE] if Metric.COST in open_ones and _has_no_price(case.state) else []
    if quality is not None and (step := stuck_step(quality)):
        stuck.append(step)
    labels = " and label the answers that are due" if quality is not None and needs_labels(quality) else ""
    step = ". ".join(stuck) or f"Wait for more requests{labels}"
    return f"Not certain yet: {'; '.join(texts)}. {step}, or promote by hand."


def _has_no_price(state: State) -> bool:
    """Returns whether cost cannot be compared, because the model of one version has no price."""
    arms = state.target, state.baseline
    return any(not arm.priced for arm in arms) and all(arm.answered >= MIN_TARGET_REQUESTS for arm in arms)


def _quality_failing(case: _Case) -> str:
    if case.quality is None:
        return f"The answers are worse. {_CHOOSE}"
    certain = f"Certain enough to {'roll back' if case.rolls_back else 'hold'}."
    step = f" {_AGAIN}" if case.rolls_back else ", or promote by hand to accept it."
    return f"{failing_pairs(case.quality)}. {certain} {failing_step(case.quality)}{step}"


def _quality_unscored(case: _Case) -> str:
    lacking = f": {unscored_shares(case.quality)}" if case.quality is not None else ""
    return (
        f"More of the target's answers have no score{lacking}. Look at why they have none, then promote or roll back by"
        " hand."
    )


def _quality_inconclusive(case: _Case) -> str:
    if case.quality is None:
        return "The answers are not shown to be as good yet. Wait for more scores, or promote by hand."
    waits = "Label the answers that are due" if needs_labels(case.quality) else "Wait for more scores"
    return (
        f"The answers are not shown to be as good yet by {not_passing(case.quality)}."
        f" {stuck_step(case.quality) or waits}, or promote by hand."
    )


def _goal(step: str) -> Callable[[_Case], str]:
    def said(case: _Case) -> str:
        found = goal_sentence(case.quality) + goal_gain(case.quality) if case.quality else ""
        return f"{found or 'The outcomes of both versions were compared.'} {step}"

    return said


_SENTENCES: Mapping[Reason, Callable[[_Case], str]] = MappingProxyType(
    {
        Reason.METRIC_FAILING: _metric_failing,
        Reason.MINIMUM_UNANSWERED: _minimum_unanswered,
        Reason.MINIMUM_DURATION: _minimum_duration,
        Reason.MINIMUM_REQUESTS: _minimum_requests,
        Reason.USERS_UNDECIDED: _users_undecided,
        Reason.NO_COMPARISON: _no_comparison,
        Reason.SAMPLE_RATIO: _sample_ratio,
        Reason.WORSE_FOR_ALL: _worse_for_all,
        Reason.INCONCLUSIVE: _inconclusive,
        Reason.QUALITY_FAILING: _quality_failing,
        Reason.QUALITY_UNSCORED: _quality_unscored,
        Reason.QUALITY_INCONCLUSIVE: _quality_inconclusive,
        Reason.GOAL_BETTER: _goal("The target becomes the active version."),
        Reason.GOAL_NOT_BETTER: _goal("The baseline stays the active version."),
        Reason.GOAL_UNDECIDED: _goal("Wait for more outcomes, or end the test by hand."),
        Reason.NO_FAILURE: lambda _: "Nothing speaks against the target so far. The rollout may go on.",
        Reason.PASSING: lambda _: "Every metric is within its limits. The rollout may go on.",
        Reason.NO_CONTROL: lambda _: "Everybody gets the target, and nothing failed before. Nothing is left to do.",
    }
)
