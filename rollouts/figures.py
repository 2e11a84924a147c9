"""An evaluation as plain JSON: what transitions keep, and what people are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from rollouts.evaluation import (
    Assessment,
    Metric,
    MetricStatus,
    State,
    Verdict,
    assess,
    decide,
    explain,
    figures,
    initial_state,
    to_json,
)
from rollouts.models import Rollout, RolloutStage
from rollouts.policies import policy_of
from rollouts.states import Stage

CONFIDENCE = 0.95


def verdict_at(state: State, stage: RolloutStage, *, elapsed_minutes: float) -> Verdict:
    """The verdict at `stage`, of which `state` may not have seen a minute yet."""
    if state.stage != stage.number:
        # What the target served before does not count towards this stage.
        state = replace(state, stage=stage.number, stage_requests=0)
    wanted = Stage(stage.weight, stage.min_duration_minutes, stage.min_requests)
    return decide(state, wanted, elapsed_minutes=elapsed_minutes)


def verdict_figures(
    state: State,
    verdict: Verdict,
    stage: RolloutStage,
    *,
    elapsed_minutes: float,
    through: datetime,
    earlier_rollbacks: int,
) -> dict[str, Any]:
    """Everything that the verdict rests on. `stage`, `elapsed_minutes`, `through` and, where there are any,
    `earlier_rollbacks` are enough to reach it again from the stored minutes."""
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
    """The same for a rollout that was never evaluated: nothing is known."""
    state = initial_state(policy_of(rollout), latency={}, cost={})
    return {
        **_assessed(state, assess(state)),
        "decision": "wait",
        "reason": "not_evaluated",
        "explanation": "No closed minute has been evaluated yet.",
        "overdue": False,
        "through": None,
    }


def _repeated(earlier_rollbacks: int) -> str:
    """What the verdict on a version that was rolled back before should not be read without."""
    if not earlier_rollbacks:
        return ""
    times = "once" if earlier_rollbacks == 1 else f"{earlier_rollbacks} times"
    return (
        f" This version was rolled back {times} before. This rollout judges it anew, with nothing carried over: again a"
        " harmless version is rolled back with a chance of up to 5 %, and a harmful one may get through."
    )


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
        "metrics": {metric.value: _metric(state, assessment.metrics[metric]) for metric in Metric},
    }


def _metric(state: State, status: MetricStatus) -> Mapping[str, Any]:
    """`evidence` and `safety` are the e-values' natural logarithms."""
    shown = figures(state, status.metric)
    return {
        "status": status.status.value,
        "judged": status.judged,
        "action": state.policy.action(status.metric).value,
        "target": shown.target,
        "baseline": shown.baseline,
        "difference": shown.difference,
        "ratio": shown.ratio,
        "interval": {"low": _finite(shown.low), "high": _finite(shown.high), "confidence": CONFIDENCE},
        "p_value": status.p_value,
        "evidence": status.evidence,
        "safety": status.safety,
        "design_effect": state.metrics[status.metric].design,
        "explanation": explain(state, status.metric),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
