from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.queries.variants import BASELINE, TARGET, ArmTotals
from core.wire.shown import shown_as
from prompts.models import PromptVersion
from rollouts import shapes
from rollouts.comparison.metrics import latest_figures, open_by_arm, present_outlook, signals_unless_too_many, totals_of
from rollouts.comparison.quality import explained, quality_of
from rollouts.comparison.segments import segments_of
from rollouts.evaluation import Action, Decision, Metric, Reason, Status
from rollouts.evaluation.policy import Policy, failing_difference
from rollouts.forecasts.plan import Plan
from rollouts.models import Rollout
from rollouts.serializers import earlier_rollbacks_shown
from rollouts.verdicts.policies import policy_of
from rollouts.watch.shown import watch_shown


def comparison(rollout: Rollout) -> dict[str, Any]:
    """Returns the comparison: rates as shares, latencies in ms, costs in US dollars. Raises AnalyticsUnavailableError
    and AnalyticsLimitError.

    `metrics` has both arms' figures weighted by minute, so that load and stage cancel out, with 95 % intervals that
    hold however often one looks. The totals of `target` and `baseline` are current and cover every stage.
    """
    totals, figures = totals_of(rollout), latest_figures(rollout)
    outlook = present_outlook(rollout, figures)
    quality = quality_of(rollout, figures)
    return {
        "rollout_id": rollout.pk,
        "rollout_status": rollout.status,
        "mode": rollout.mode,
        "current_stage": rollout.current_stage or None,
        "overall_status": figures["status"],
        "decision": figures["decision"],
        "reason": figures["reason"],
        "explanation": explained(rollout, figures, quality),
        "target": _arm(rollout.target_version, totals[TARGET]),
        "baseline": _arm(rollout.baseline_version, totals[BASELINE]),
        "metrics": judged_metrics(figures, policy_of(rollout)),
        "quality": quality,
        "signals": signals_unless_too_many(rollout),
        "segments": segments_of(rollout),
        "sample_ratio": figures["sample_ratio"],
        "minutes_evaluated": figures["minutes"],
        "target_requests_evaluated": figures["target_requests"],
        "stage_requests_evaluated": figures["stage_requests"],
        "overdue": figures["overdue"],
        "evaluated_through": figures["through"],
        "evaluated_at": rollout.evaluation.decided_at,
        "formula": figures["formula"],
        "open_requests": open_by_arm(rollout),
        "forecast": outlook and shown_as(shapes.RolloutForecast, outlook.forecast),
        "power": outlook and outlook.power and shown_as(shapes.RolloutPower, outlook.power),
        "watch": watch_shown(rollout),
        "earlier_rollbacks": earlier_rollbacks_shown(rollout),
    }


def judged_metrics(figures: Mapping[str, Any], policy: Policy) -> dict[str, dict[str, Any]]:
    shown = {}
    # The metrics are put in order, because databases sort the members of objects.
    for metric in Metric:
        if (one := figures["metrics"].get(metric.value)) is None:
            continue
        baseline = one["baseline"]
        shown[metric.value] = {
            **one,
            "failing_difference": None if baseline is None else failing_difference(metric, baseline, policy),
            "decides": one["judged"] and _decides(metric.value, one, figures),
        }
    return shown


def _decides(name: str, metric: Mapping[str, Any], figures: Mapping[str, Any]) -> bool:
    match figures["reason"]:
        case Reason.METRIC_FAILING:
            action = Action.ROLL_BACK if figures["decision"] == Decision.ROLL_BACK else Action.HOLD
            return (metric["status"], metric["action"]) == (Status.FAILING, action)
        case Reason.MINIMUM_UNANSWERED | Reason.NO_COMPARISON:
            return name == "unanswered"
        case Reason.USERS_UNDECIDED:
            # Without a metric that fails by its requests, the reason is that too many of them went unanswered.
            named = any(one.get("users_undecided") for one in figures["metrics"].values())
            return bool(metric["users_undecided"]) if named else name == "unanswered"
        case Reason.INCONCLUSIVE:
            return bool(metric["status"] == Status.INCONCLUSIVE)
        case reason:
            return bool(reason == Reason.PASSING)


def planned(plan: Plan) -> shapes.RolloutPlan:
    stages = [
        shown_as(shapes.RolloutStageForecast, one, one.stage, number=number)
        for number, one in enumerate(plan.stages, start=1)
    ]
    return shown_as(shapes.RolloutPlan, plan, stages=stages)


def _arm(version: PromptVersion, totals: ArmTotals) -> dict[str, Any]:
    """`error_rate` leaves out cancelled requests and clients' own faults.

    Of `request_count`, those in `left_out`, by reason, and the uncompared ones are not compared; the others are
    answered or not.
    """
    return {
        "version_id": version.pk,
        "version_number": version.number,
        "request_count": totals.requests,
        "cache_hit_count": totals.cache_hits,
        "left_out_count": sum(totals.left_out.values()) - totals.cache_hits,
        "left_out": dict(sorted(totals.left_out.items())),
        "uncompared_count": totals.uncompared,
        "answered_count": totals.compared - totals.unanswered,
        "unanswered_count": totals.unanswered,
        "unanswered_rate": totals.unanswered / totals.compared if totals.compared else 0.0,
        "unanswered_reasons": dict(sorted(totals.reasons.items())),
        "error_count": totals.errors,
        "error_rate": totals.errors / totals.counted if totals.counted else 0.0,
        "contract_violation_count": totals.contract,
        "truncated_count": totals.truncated,
        "served_by_fallback_count": totals.fallback,
        "empty_count": totals.empty,
        "stopped_count": totals.stopped,
        "average_latency_ms": totals.average_latency_ms,
        "p95_latency_ms": totals.p95_latency_ms,
        "total_cost_usd": float(totals.cost_usd),
        "average_cost_usd": float(totals.priced_cost_usd / totals.priced) if totals.priced else 0.0,
        "unpriced_request_count": totals.unpriced,
        "fallback_request_count": totals.substituted,
    }
