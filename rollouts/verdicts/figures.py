from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from analytics.queries.variants import UsualValues
from rollouts.allocation import AllocationType
from rollouts.evaluation import (
    FORMULA,
    FORMULAS,
    Assessment,
    Metric,
    State,
    Status,
    UnknownFormulaError,
    Verdict,
    assess,
    at_stage,
    decide,
    explain,
    figures,
    initial_state,
    to_json,
)
from rollouts.evaluation.policy import FAIL_AT, PASS_AT
from rollouts.evaluation.quality import QualityAssessment, QualityState, assess_quality
from rollouts.models import Rollout, RolloutStage
from rollouts.shapes import finite, interval
from rollouts.verdicts.policies import policy_of
from rollouts.verdicts.quality.figures import quality_figures
from rollouts.verdicts.quality.reading import QualityReading, quality_before_any

_MAX_NAMED = 3


def check_formula(rollout: Rollout) -> None:
    # The number is read from the verdict, because the states are large and are not read for lists.
    number = rollout.evaluation.verdict.get("formula", FORMULA)
    if number not in FORMULAS:
        raise UnknownFormulaError(number)


def first_state(rollout: Rollout, usual: UsualValues) -> State:
    return initial_state(
        policy_of(rollout),
        latency=usual.latency,
        cost=usual.cost,
        usual_unanswered=(usual.unanswered, usual.requests),
        weights=list(rollout.stages.order_by("number").values_list("weight", flat=True)),
        sticky=rollout.allocation_type != AllocationType.RANDOM,
    )


def verdict_at(
    state: State, stage: RolloutStage, *, elapsed_minutes: float, quality: QualityState | None = None
) -> Verdict:
    return decide(at_stage(state, stage.number), stage.plan, elapsed_minutes=elapsed_minutes, quality=quality)


def verdict_figures(
    state: State,
    verdict: Verdict,
    stage: RolloutStage,
    *,
    elapsed_minutes: float,
    through: datetime,
    earlier_rollbacks: int,
    segments: Sequence[str] = (),
    quality: QualityReading | None = None,
) -> dict[str, Any]:
    """Returns everything that the verdict rests on. `stage`, `elapsed_minutes`, `through` and `earlier_rollbacks` (if
    any) are enough to repeat the verdict from the stored minutes.

    `segments`, in words, are those in which the target is worse: a warning, on which the verdict does not rest.
    """
    repeated = {"earlier_rollbacks": earlier_rollbacks} if earlier_rollbacks else {}
    warned = {"segments": list(segments)} if segments else {}
    scores = {"quality": quality_figures(quality, verdict.quality)} if quality and verdict.quality else {}
    return {
        **_assessed(state, verdict.assessment),
        "decision": verdict.decision.value,
        "reason": verdict.reason.value,
        "explanation": verdict.explanation + _repeated(earlier_rollbacks) + worse_for(segments),
        **repeated,
        **warned,
        **scores,
        "status": overall(verdict.assessment.status, verdict.quality).value,
        "overdue": verdict.overdue,
        "stage": stage.number,
        "weight": stage.weight,
        "elapsed_minutes": elapsed_minutes,
        "through": through.isoformat(),
    }


def figures_before_any(
    rollout: Rollout, explanation: str = "Not judged yet: no minute has closed since the start. Nothing to do yet."
) -> dict[str, Any]:
    state, quality = first_state(rollout, UsualValues()), quality_before_any(rollout)
    scores = {"quality": quality_figures(quality, assess_quality(quality.state))} if quality else {}
    return {
        **_assessed(state, assess(state)),
        **scores,
        "decision": "wait",
        "reason": "not_evaluated",
        "explanation": explanation,
        "overdue": False,
        "through": None,
    }


def overall(metrics: Status, quality: QualityAssessment | None) -> Status:
    statuses = {metrics} if quality is None or not quality.judged else {metrics, quality.status}
    worst_first = (Status.FAILING, Status.INCONCLUSIVE)
    return next((one for one in worst_first if one in statuses), Status.PASSING)


def _repeated(earlier_rollbacks: int) -> str:
    if not earlier_rollbacks:
        return ""
    times = "once" if earlier_rollbacks == 1 else f"{earlier_rollbacks} times"
    return (
        f" This version was rolled back {times} before. It is judged anew, so a harmless version fails again with a"
        " chance of up to 5 %, and a harmful one may get through."
    )


def worse_for(segments: Sequence[str]) -> str:
    if not segments:
        return ""
    shown = ", ".join(segments[:_MAX_NAMED]) + (" and others" if len(segments) > _MAX_NAMED else "")
    return f" The target is worse for {shown}: look at its requests there. This warns and moves nothing."


def _assessed(state: State, assessment: Assessment) -> dict[str, Any]:
    return {
        "formula": state.formula,
        "status": assessment.status.value,
        "minutes": assessment.minutes,
        "target_requests": assessment.target_requests,
        "stage_requests": state.stage_requests,
        "sample_ratio": {
            "alarm": assessment.sample_ratio_alarm,
            "evidence": state.sample_ratio.evidence,
            "target": state.sample_ratio.target,
            "baseline": state.sample_ratio.baseline,
        },
        "counts": {"target": to_json(state.target), "baseline": to_json(state.baseline)},
        "metrics": {metric.value: _metric(state, assessment, metric) for metric in Metric},
    }


def _metric(state: State, assessment: Assessment, metric: Metric) -> Mapping[str, Any]:
    """`evidence`, `safety` and their thresholds are natural logarithms of e-values."""
    status, shown = assessment.metrics[metric], figures(state, metric)
    return {
        "status": status.status.value,
        "judged": status.judged,
        "action": state.policy.action(metric).value,
        "target": shown.target,
        "baseline": shown.baseline,
        "difference": shown.difference,
        "ratio": shown.ratio,
        "interval": interval(shown.low, shown.high),
        "p_value": status.p_value,
        "evidence": status.evidence,
        "safety": status.safety,
        "evidence_threshold": finite(FAIL_AT[metric]),
        "safety_threshold": PASS_AT,
        # None means sticky allocation whose design effect is not known yet.
        "design_effect": state.metrics[metric].next_design,
        "user_evidence": status.user_evidence,
        "users_undecided": status.users_undecided,
        "explanation": explain(state, metric, assessment),
    }
