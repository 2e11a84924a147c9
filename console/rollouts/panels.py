from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.queries.variants import BASELINE, TARGET
from console.rollouts.links import Link, judge_links, metric_link, next_links, requests_link
from console.rollouts.standing import heading, obstacle, steps
from core.audit.actors import actor_names
from core.ui.pages import Visit
from core.ui.plots import Plot
from rollouts.comparison.metrics import latest_figures, open_by_arm, present_outlook, totals_of
from rollouts.comparison.minute_sums import Sums, minute_sums
from rollouts.comparison.plots import metric_plots, traffic_plot
from rollouts.comparison.quality import explained, quality_of
from rollouts.comparison.tables import MetricRow, left_out_rows, metric_rows, total_rows
from rollouts.comparison.wire import judged_metrics
from rollouts.models import Rollout
from rollouts.services import AUTOMATIC
from rollouts.verdicts.policies import policy_of

Context = Mapping[str, Any]

BY_ITSELF = "itself"


@dataclass(frozen=True, slots=True)
class ShownMetric:
    row: MetricRow
    plot: Plot | None
    link: Link
    is_open: bool


def verdict(visit: Visit, row: Rollout) -> Context:
    figures = latest_figures(row)
    quality = quality_of(row, figures)
    goal = (quality or {}).get("goal")
    # The page begins with the verdict on the goal, and does not say it twice.
    said = goal["explanation"] if goal else ""
    figures = {**figures, "explanation": explained(row, figures, quality).removeprefix(said).strip()}
    outlook = present_outlook(row, figures)
    names = names_of(row)
    deciding = [name for name, one in _judged(row, figures).items() if one["decides"]]
    last = list(row.transitions.all())[-1] if row.ended_at else None
    return {
        "row": row,
        "goal": goal,
        "heading": heading(row, figures, outlook),
        "steps": steps(row),
        "obstacle": obstacle(row, figures, names),
        "links": [*judge_links(visit, quality), *next_links(visit, row, figures["reason"], deciding)],
        "judge_links": judge_links(visit, quality),
        "ended": (last, names[last.actor]) if last else None,
        "figures": figures,
        "outlook": outlook,
        "decided_at": row.evaluation.decided_at,
    }


def metrics(visit: Visit, row: Rollout) -> Context:
    figures = latest_figures(row)
    judged, sums = _judged(row, figures), _sums(row, figures)
    plots = metric_plots(sums, list(row.stages.all()), judged) if sums else {}
    rows = metric_rows(judged)
    worst = next((one for one in rows if one.is_worse and one.decides), None)
    return {
        "metrics": [
            ShownMetric(one, plots.get(one.name), metric_link(visit, row, one.name), is_open=one is worst)
            for one in rows
        ],
        "formula": figures["formula"],
        "is_judged": sums is not None,
    }


def requests(visit: Visit, row: Rollout) -> Context:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    figures = latest_figures(row)
    sums = _sums(row, figures)
    totals = totals_of(row)
    return {
        "counts": total_rows(totals),
        "left_out": left_out_rows(totals, figures["counts"]),
        "open_requests": open_by_arm(row),
        "traffic": traffic_plot(sums, list(row.stages.all())) if sums else None,
        "arms": [
            (
                f"{arm.capitalize()}: version {version.number}",
                requests_link(visit, row, arm),
                requests_link(visit, row, arm, outcome="error"),
            )
            for arm, version in ((TARGET, row.target_version), (BASELINE, row.baseline_version))
        ],
    }


def history(visit: Visit, row: Rollout) -> Context:
    names = names_of(row)
    return {
        "stages": [(stage, stage.status.value) for stage in row.stages.all()],
        "transitions": [(move, names[move.actor]) for move in reversed(row.transitions.all())],
    }


def names_of(row: Rollout) -> Mapping[str, str]:
    names = actor_names([row.created_by, *(move.actor for move in row.transitions.all())])
    return {**names, AUTOMATIC: BY_ITSELF}


def _judged(row: Rollout, figures: Mapping[str, Any]) -> Mapping[str, Any]:
    return judged_metrics(figures, policy_of(row))


def _sums(row: Rollout, figures: Mapping[str, Any]) -> Sums | None:
    # Minutes that another formula counted lack what the plots show.
    return minute_sums(row.pk) if figures["through"] else None
