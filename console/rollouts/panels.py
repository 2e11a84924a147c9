"""The contexts of a rollout's panels. Each loads the rollout itself, since it runs in a thread of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from analytics.queries.variants import BASELINE, TARGET
from core.ui.pages import Visit
from core.ui.periods import CUSTOM, Period
from core.ui.tiles import Tile
from rollouts.comparison.metrics import latest_figures, open_by_arm, present_outlook, totals_of
from rollouts.comparison.minute_sums import minute_sums
from rollouts.comparison.plots import plots
from rollouts.comparison.tables import metric_rows, total_rows
from rollouts.comparison.wire import judged_metrics
from rollouts.models import Rollout, RolloutStage, RolloutTransition
from rollouts.selectors import current_stage, get_rollout
from rollouts.serializers import stage_status
from rollouts.states import Status
from rollouts.verdicts.policies import policy_of

Context = Mapping[str, Any]

_REQUESTS = "analytics_requests_changelist"


def verdict(visit: Visit, rollout_id: UUID) -> Context:
    row = get_rollout(visit.project.pk, rollout_id)
    figures = latest_figures(row)
    outlook = present_outlook(row, figures)
    return {
        "row": row,
        "sentence": sentence(row),
        "ended_by": _ended_by(row),
        "figures": figures,
        "outlook": outlook,
        "decided_at": row.evaluation.decided_at,
        "tiles": _tiles(row, figures),
        "done": _done(row),
    }


def metrics(visit: Visit, rollout_id: UUID) -> Context:
    row = get_rollout(visit.project.pk, rollout_id)
    return {"metrics": metric_rows(_judged(row)), "formula": latest_figures(row)["formula"]}


def over_time(visit: Visit, rollout_id: UUID) -> Context:
    row = get_rollout(visit.project.pk, rollout_id)
    # Minutes that another formula counted lack what the plots show.
    sums = minute_sums(row.pk) if latest_figures(row)["through"] else None
    return {"plots": plots(sums, list(row.stages.all()), _judged(row)) if sums else []}


def requests(visit: Visit, rollout_id: UUID) -> Context:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    row = get_rollout(visit.project.pk, rollout_id)
    return {
        "counts": total_rows(totals_of(row)),
        "open_requests": open_by_arm(row),
        "arms": [
            (
                f"{arm.capitalize()}: version {version.number}",
                _requests_link(visit, row, arm),
                _failures_link(visit, row, arm),
            )
            for arm, version in ((TARGET, row.target_version), (BASELINE, row.baseline_version))
        ],
    }


def history(visit: Visit, rollout_id: UUID) -> Context:
    row = get_rollout(visit.project.pk, rollout_id)
    return {
        "stages": [(stage, stage_status(row, stage).value) for stage in row.stages.all()],
        "transitions": row.transitions.order_by("-id"),
    }


def links(visit: Visit, row: Rollout) -> Mapping[str, str]:
    """Returns the addresses of what the rollout names; an empty one where there is no such page."""
    before, after = row.baseline_version.number, row.target_version.number
    return {
        "prompt": visit.link_if_there("prompt", row.config_id),
        "baseline": visit.link_if_there("prompt", row.config_id, version=before),
        "target": visit.link_if_there("prompt", row.config_id, version=after),
        "diff": visit.link_if_there("prompt", row.config_id, version=after, against=before),
    }


def sentence(row: Rollout) -> str:
    """Returns in one sentence where the rollout stands."""
    stage, count = current_stage(row), len(row.stages.all())
    target, baseline = f"version {row.target_version.number}", f"version {row.baseline_version.number}"
    match Status(row.status):
        case Status.PENDING:
            return f"Not started: every request gets {baseline}."
        case Status.RUNNING:
            share = f"{stage.weight} % of the requests get {target}" if stage else ""
            return f"Running, stage {row.current_stage} of {count}: {share}."
        case Status.PAUSED:
            return f"Paused at stage {row.current_stage} of {count}: requests get no managed prompt."
        case Status.COMPLETED:
            return f"Completed: {target} is served to everybody."
        case Status.ROLLED_BACK:
            return f"Rolled back: {baseline} is served to everybody."


def _ended_by(row: Rollout) -> RolloutTransition | None:
    return list(row.transitions.all())[-1] if row.ended_at else None


def _judged(row: Rollout) -> Mapping[str, Any]:
    return judged_metrics(latest_figures(row), policy_of(row).cost_allowance)


def _tiles(row: Rollout, figures: Mapping[str, Any]) -> list[Tile]:
    stage, count = current_stage(row), len(row.stages.all())
    return [
        Tile("Share of the target", f"{stage.weight} %" if stage and not row.ended_at else NOBODY[row.status]),
        Tile("Stage", f"{row.current_stage} of {count}"),
        Tile("Requests of the target judged", f"{figures['target_requests']:,}"),
        Tile("Minutes judged", f"{figures['minutes']:,}"),
    ]


NOBODY = {
    Status.PENDING.value: "0 %",
    Status.RUNNING.value: "0 %",
    Status.PAUSED.value: "0 %",
    Status.COMPLETED.value: "100 %",
    Status.ROLLED_BACK.value: "0 %",
}


def _done(row: Rollout) -> int:
    """Returns the percentage of the stages that are over."""
    stages: list[RolloutStage] = list(row.stages.all())
    if row.status == Status.COMPLETED:
        return 100
    return round(100 * sum(stage.left_at is not None for stage in stages) / len(stages))


def _requests_link(visit: Visit, row: Rollout, arm: str, **query: Any) -> str:
    """Returns the address of the arm's requests from the start on, to a minute around it: clocks of hosts differ."""
    start = (row.started_at or row.created_at) - timedelta(minutes=1)
    end = (row.ended_at or timezone.now()) + timedelta(minutes=1)
    range_of = Period(CUSTOM, start, end).parameters
    return visit.link_if_there(_REQUESTS, **range_of, rollout_id=row.pk, variant=arm, **query)


def _failures_link(visit: Visit, row: Rollout, arm: str) -> str:
    return _requests_link(visit, row, arm, outcome="error")
