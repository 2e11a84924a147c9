from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rollouts.evaluation.policy import PASS_AT, RATE_COUNT_SIZE
from rollouts.evaluation.quality.assess import EvaluatorStatus, Goal, NotPassing, QualityAssessment, is_unchecked
from rollouts.evaluation.quality.state import QualityState, TaskTotals
from rollouts.evaluation.quality.values import MIN_LABELS
from rollouts.evaluation.terms import Action
from rollouts.evaluation.words import about, share

_MAX_ESTIMATE = 100_000

_WHY: Mapping[NotPassing, str] = MappingProxyType(
    {
        NotPassing.UNCALIBRATED: "its judge is uncalibrated, so that it cannot pass",
        NotPassing.JUDGE_DRIFTED: "its judge is not what it was, so that it cannot pass",
        NotPassing.MISSING_SCORES: "too many scores are missing",
        NotPassing.LABELS_UNRELIABLE: "its labels tell no more than chance or its judge would",
    }
)

_STEPS: Mapping[NotPassing, str] = MappingProxyType(
    {
        NotPassing.UNCALIBRATED: "read its answers, and label some to calibrate its judge before the next rollout",
        NotPassing.JUDGE_DRIFTED: "read its answers, and calibrate its judge again before the next rollout",
        NotPassing.MISSING_SCORES: "find out why scores are missing",
        NotPassing.LABELS_UNRELIABLE: "let a second person label some of the same answers",
    }
)
"""What to do where neither more requests nor more scores make an evaluator pass."""


_VERDICTS: Mapping[Goal, str] = MappingProxyType(
    {
        Goal.BETTER: "better with the target",
        Goal.NOT_BETTER: "not better with the target",
        Goal.UNDECIDED: "undecided so far",
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
    text, note = _explained(judged, title), unchecked(judged, title)
    return text if not note or _WHY[NotPassing.UNCALIBRATED] in text else f"{text} {note[0].upper()}{note[1:]}."


def _explained(judged: Judged, title: str) -> str:
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


def unchecked(judged: Judged, title: str) -> str:
    """Returns what every sentence about a judge adds of whom nobody knows whether it is right; "" for others."""
    rule = judged.state.rule(title)
    if not is_unchecked(judged.state, rule):
        return ""
    if rule.label_share is None:
        return "this judge is uncalibrated: too few current labels have checked it"
    few = judged.state.of(title).labels.number < MIN_LABELS
    return "few labels have checked this judge so far" if few else "its labels only repeat this judge"


def pair(judged: Judged, title: str) -> str:
    shown = judged.assessment.evaluators[title].figures
    if shown.target is None or shown.baseline is None:
        return ""
    return f"{share(shown.target)} against {share(shown.baseline)}"


def failing_pairs(judged: Judged) -> str:
    return "; ".join(_named(judged, title, pair(judged, title)) for title in failing(judged))


def goal_sentence(judged: Judged) -> str:
    """Returns the verdict of an A/B test; "" without a goal."""
    goal = judged.assessment.goal
    if goal is None:
        return ""
    both = pair(judged, goal.title)
    if not both:
        return f"{goal.title} is undecided: no outcomes to compare yet."
    return f"{goal.title} is {_VERDICTS[goal.verdict]}: {both}."


def goal_gain(judged: Judged) -> str:
    """Returns the interval of the target's gain as a sentence; "" while it is unknown."""
    goal = judged.assessment.goal
    shown = judged.assessment.evaluators[goal.title].figures if goal else None
    if shown is None or shown.low is None or shown.high is None:
        return ""
    low, high = (100 * min(1.0, max(-1.0, one)) for one in (shown.low, shown.high))
    return f" The difference is between {low:+.1f} and {high:+.1f} points (95 %, however often one looks)."


def failing_step(judged: Judged) -> str:
    if all(judged.state.rule(title).is_outcome for title in failing(judged)):
        return "Read the requests whose outcome was bad and mend the version"
    if any(unchecked(judged, title) for title in failing(judged)):
        return (
            "Label some of the answers with low scores to learn whether people agree, and mend the version if they do"
        )
    return "Read the answers with low scores and mend the version"


def not_passing(judged: Judged) -> str:
    return ", ".join(f"{title} ({_why(judged, title)})" for title in judged.assessment.required)


def stuck_step(judged: Judged) -> str:
    """Returns what to do about required evaluators that neither more requests nor more scores make pass; "" without
    any."""
    reasons = [judged.assessment.evaluators[title].not_passing for title in judged.assessment.required]
    steps = dict.fromkeys(step for why in reasons if why is not None and (step := _STEPS.get(why)))
    return f"It will not pass by waiting: {', and '.join(steps)}" if steps else ""


def needs_labels(judged: Judged) -> bool:
    return any(judged.state.rule(title).label_share is not None for title in judged.assessment.required)


def unscored_shares(judged: Judged) -> str:
    found = []
    for rule in judged.state.deciding:
        one = judged.state.of(rule.title)
        own, theirs = _missing(one.target), _missing(one.baseline)
        if one.target.missing >= RATE_COUNT_SIZE and own > theirs:
            found.append(_named(judged, rule.title, f"{share(own)} against {share(theirs)}"))
    return "; ".join(found)


def _named(judged: Judged, title: str, both: str) -> str:
    text, note = f"{title}: {both}" if both else title, unchecked(judged, title)
    return f"{text} ({note})" if note else text


def _why(judged: Judged, title: str) -> str:
    status = judged.assessment.evaluators[title]
    if status.not_passing is NotPassing.UNCALIBRATED:
        return _WHY[status.not_passing]
    known = _WHY.get(status.not_passing) if status.not_passing else None
    note = unchecked(judged, title)
    return f"{known or _progress(judged, status)}{f'; {note}' if note else ''}"


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
