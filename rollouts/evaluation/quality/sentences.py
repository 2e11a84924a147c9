from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rollouts.evaluation.policy import PASS_AT, RATE_COUNT_SIZE
from rollouts.evaluation.quality.assess import EvaluatorStatus, NotPassing, QualityAssessment
from rollouts.evaluation.quality.state import QualityState, TaskTotals
from rollouts.evaluation.terms import Action
from rollouts.evaluation.words import about, share

_MAX_ESTIMATE = 100_000

_WHY: Mapping[NotPassing, str] = MappingProxyType(
    {
        NotPassing.UNCALIBRATED: "its judge is not calibrated, so that it cannot pass",
        NotPassing.JUDGE_DRIFTED: "its judge is not what it was, so that it cannot pass",
        NotPassing.MISSING_SCORES: "too many scores are missing",
    }
)


@dataclass(frozen=True, slots=True)
class Judged:
    state: QualityState
    assessment: QualityAssessment


def failing(judged: Judged) -> list[str]:
    action, statuses = judged.assessment.action, judged.assessment.evaluators
    if action is None:
        return []
    telling = [rule for rule in judged.state.deciding if action is Action.HOLD or rule.action is action]
    ranked = sorted(telling, key=lambda rule: -_evidence(statuses[rule.title]))
    return [rule.title for rule in ranked if statuses[rule.title].worse] or [ranked[0].title]


def explain_evaluator(judged: Judged, title: str) -> str:
    status, rule, both = judged.assessment.evaluators[title], judged.state.rule(title), pair(judged, title)
    if not both:
        return "Nothing to compare yet."
    if rule.action is Action.IGNORE:
        return f"Ignored by this rollout: {both}."
    if title in failing(judged):
        then = "roll back" if judged.assessment.action is Action.ROLL_BACK else "hold"
        return f"Worse: {both}, certain enough to {then}."
    if status.not_passing is None:
        return f"Within its margin: {both}."
    if status.worse:
        return f"Looks worse: {both}, which is not certain yet."
    if status.not_passing in _WHY:
        return f"{both}, but {_WHY[status.not_passing]}."
    return f"No difference seen yet ({_progress(judged, status)})."


def pair(judged: Judged, title: str) -> str:
    shown = judged.assessment.evaluators[title].figures
    if shown.target is None or shown.baseline is None:
        return ""
    return f"{share(shown.target)} against {share(shown.baseline)}"


def failing_pairs(judged: Judged) -> str:
    known = ((title, pair(judged, title)) for title in failing(judged))
    return "; ".join(f"{title}: {both}" if both else title for title, both in known)


def not_passing(judged: Judged) -> str:
    return ", ".join(f"{title} ({_why(judged, title)})" for title in judged.assessment.required)


def unscored_shares(judged: Judged) -> str:
    found = []
    for rule in judged.state.deciding:
        one = judged.state.of(rule.title)
        own, theirs = _missing(one.target), _missing(one.baseline)
        if one.target.missing >= RATE_COUNT_SIZE and own > theirs:
            found.append(f"{rule.title}: {share(own)} against {share(theirs)}")
    return "; ".join(found)


def _why(judged: Judged, title: str) -> str:
    status = judged.assessment.evaluators[title]
    known = _WHY.get(status.not_passing) if status.not_passing else None
    return known or _progress(judged, status)


def _progress(judged: Judged, status: EvaluatorStatus) -> str:
    needed = _pairs_to_pass(judged.state.of(status.title).safe, status.pairs)
    return f"{status.pairs:,} of about {needed} pairs" if needed else _counted(status.pairs)


def _counted(pairs: int) -> str:
    return f"{pairs:,} pair{'' if pairs == 1 else 's'}"


def _pairs_to_pass(safe: Sequence[float], pairs: int) -> str | None:
    best, needed = max(safe), PASS_AT + math.log(len(safe))
    if best <= 0 or not pairs:
        return None
    estimate = pairs * needed / best
    return about(estimate) if pairs < estimate <= _MAX_ESTIMATE else None


def _missing(totals: TaskTotals) -> float:
    return totals.missing / totals.due if totals.due else 0.0


def _evidence(status: EvaluatorStatus) -> float:
    return status.evidence if status.user_evidence is None else max(status.evidence, status.user_evidence)
