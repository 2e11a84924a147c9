from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollouts.evaluation.json_form import to_json
from rollouts.evaluation.policy import PASS_AT
from rollouts.evaluation.quality import QualityAssessment
from rollouts.evaluation.quality.assess import GoalStatus
from rollouts.evaluation.quality.rules import QUALITY_FAILS_AT, UNSCORED_FAILS_AT
from rollouts.evaluation.quality.sentences import Judged, explain_evaluator, failing, goal_gain, goal_sentence
from rollouts.evaluation.terms import Status
from rollouts.quality.entries import RolloutEvaluator
from rollouts.quality.shown import evaluator_shown
from rollouts.shapes import finite, interval
from rollouts.verdicts.quality.reading import QualityReading, times_shown


def quality_figures(reading: QualityReading, assessment: QualityAssessment) -> dict[str, Any]:
    """`through`, by basis, is enough to repeat the verdict from the stored minutes. Evidence, safety and their
    thresholds are natural logarithms of e-values."""
    judged = Judged(reading.state, assessment)
    goal = {"goal": _goal(judged, assessment.goal)} if assessment.goal else {}
    return {
        **goal,
        "status": assessment.status.value,
        "judged": assessment.judged,
        "action": assessment.action.value if assessment.action else None,
        "evidence": finite(assessment.evidence),
        "evidence_threshold": QUALITY_FAILS_AT,
        "unscored": assessment.unscored,
        "unscored_evidence": finite(assessment.unscored_evidence),
        "unscored_threshold": UNSCORED_FAILS_AT,
        "required": list(assessment.required),
        "through": times_shown(reading.through),
        "evaluators": [_evaluator(judged, one) for one in reading.evaluators],
    }


def _goal(judged: Judged, goal: GoalStatus) -> Mapping[str, Any]:
    return {
        "title": goal.title,
        "verdict": goal.verdict.value,
        "evidence": goal.evidence,
        "safety": goal.safety,
        "threshold": PASS_AT,
        "explanation": goal_sentence(judged) + goal_gain(judged),
    }


def _evaluator(judged: Judged, evaluator: RolloutEvaluator) -> Mapping[str, Any]:
    status, one = judged.assessment.evaluators[evaluator.title], judged.state.of(evaluator.title)
    shown = status.figures
    return {
        **evaluator_shown(evaluator),
        "status": _status(judged, evaluator.title).value,
        "not_passing": status.not_passing.value if status.not_passing else None,
        "worse": status.worse,
        "drifted": one.drifted,
        "pairs": status.pairs,
        "complete_pairs": one.complete,
        "missing_share": status.missing_share,
        "tasks": {"target": to_json(one.target), "baseline": to_json(one.baseline)},
        "target": shown.target,
        "baseline": shown.baseline,
        "difference": shown.difference,
        "interval": interval(_difference(shown.low), _difference(shown.high)),
        "evidence": status.evidence,
        "user_evidence": status.user_evidence,
        "safety": status.safety,
        "safety_threshold": PASS_AT,
        "design_effect": one.next_design,
        "explanation": explain_evaluator(judged, evaluator.title),
    }


def _status(judged: Judged, title: str) -> Status:
    if title in failing(judged):
        return Status.FAILING
    passes = judged.assessment.evaluators[title].not_passing is None
    return Status.PASSING if passes else Status.INCONCLUSIVE


def _difference(bound: float | None) -> float | None:
    return None if bound is None else min(1.0, max(-1.0, bound))
