"""The figures of an evaluation as plain JSON: transitions keep them, and people are shown them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rollouts.allocation import AllocationType
from rollouts.evaluation import formula_1, formula_2, formula_of, to_json
from rollouts.evaluation.formulas import CURRENT
from rollouts.evaluation.grid import Histogram
from rollouts.models import Rollout, RolloutStage
from rollouts.policies import policy_of
from rollouts.states import Stage

AnyState = formula_1.State | formula_2.State
AnyVerdict = formula_1.Verdict | formula_2.Verdict

CONFIDENCE = 0.95


def first_state(rollout: Rollout, number: int, *, latency: Histogram, cost: Histogram) -> AnyState:
    """Returns the state at the start by the formula of this number. `latency` and `cost` are the baseline's usual
    ones by bin."""
    values: dict[str, Any] = {"latency": latency, "cost": cost}
    if number != formula_1.FORMULA:
        values["weights"] = list(rollout.stages.order_by("number").values_list("weight", flat=True))
        values["sticky"] = rollout.allocation_type != AllocationType.RANDOM
    state: AnyState = formula_of(number).initial_state(policy_of(rollout), **values)
    return state


def verdict_at(state: AnyState, stage: RolloutStage, *, elapsed_minutes: float) -> AnyVerdict:
    """Returns the verdict at `stage`, of which `state` may not have seen a minute yet."""
    formula = formula_of(state.formula)
    plan = Stage(stage.weight, stage.min_duration_minutes, stage.min_requests)
    verdict: AnyVerdict = formula.decide(formula.at_stage(state, stage.number), plan, elapsed_minutes=elapsed_minutes)
    return verdict


def verdict_figures(
    state: AnyState,
    verdict: AnyVerdict,
    stage: RolloutStage,
    *,
    elapsed_minutes: float,
    through: datetime,
    earlier_rollbacks: int,
) -> dict[str, Any]:
    """Returns everything that the verdict rests on. `stage`, `elapsed_minutes`, `through` and, where there are any,
    `earlier_rollbacks` are enough to reach the verdict again from the stored minutes."""
    repeated = {"earlier_rollbacks": earlier_rollbacks} if earlier_rollbacks else {}
    return {
        **_assessed(state, verdict.assessment),
        "decision": verdict.decision.value,
        "reason": verdict.reason.value,
        "explanation": verdict.explanation + _repeated(earlier_rollbacks),
        **repeated,
        "overdue": verdict.overdue,
        "stage": stage.number,
        "weight": stage.weight,
        "elapsed_minutes": elapsed_minutes,
        "through": through.isoformat(),
    }


def figures_before_any(rollout: Rollout) -> dict[str, Any]:
    """Returns the figures of a rollout that was never evaluated, in which nothing is known."""
    state = first_state(rollout, CURRENT, latency={}, cost={})
    return {
        **_assessed(state, formula_of(CURRENT).assess(state)),
        "decision": "wait",
        "reason": "not_evaluated",
        "explanation": "No closed minute has been evaluated yet.",
        "overdue": False,
        "through": None,
    }


def _repeated(earlier_rollbacks: int) -> str:
    """Returns the sentence that warns of earlier rollbacks to the same version."""
    if not earlier_rollbacks:
        return ""
    times = "once" if earlier_rollbacks == 1 else f"{earlier_rollbacks} times"
    return (
        f" This version was rolled back {times} before. This rollout judges it anew, with nothing carried over: again a"
        " harmless version is rolled back with a chance of up to 5 %, and a harmful one may get through."
    )


def _assessed(state: AnyState, assessment: Any) -> dict[str, Any]:
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
        "metrics": {metric.value: _metric(state, assessment, metric) for metric in formula_of(state.formula).Metric},
    }


def _metric(state: AnyState, assessment: Any, metric: Any) -> Mapping[str, Any]:
    """Returns the figures of one metric. `evidence`, `safety` and their thresholds are natural logarithms of
    e-values."""
    formula, status = formula_of(state.formula), assessment.metrics[metric]
    shown = formula.figures(state, metric)
    shown = {
        "status": status.status.value,
        "judged": status.judged,
        "action": state.policy.action(metric).value,
        "target": shown.target,
        "baseline": shown.baseline,
        "difference": shown.difference,
        "ratio": shown.ratio,
        "interval": {"low": _finite(shown.low), "high": _finite(shown.high), "confidence": CONFIDENCE},
        "p_value": status.p_value,
        "evidence": status.evidence,
        "safety": status.safety,
    }
    if isinstance(state, formula_1.State):
        # The figures of the first formula keep exactly the keys that were stored with its verdicts.
        return {
            **shown,
            "design_effect": state.metrics[metric].design,
            "explanation": formula_1.explain(state, metric),
        }
    return {
        **shown,
        "evidence_threshold": formula.policy.FAIL_AT[metric],
        "safety_threshold": formula.policy.PASS_AT,
        # None means sticky allocation whose design effect is not known yet.
        "design_effect": state.metrics[metric].next_design,
        "user_evidence": status.user_evidence,
        "users_undecided": status.users_undecided,
        "explanation": formula_2.explain(state, metric, assessment),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
