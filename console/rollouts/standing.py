from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rollouts.evaluation import Decision
from rollouts.evaluation.terms import HOLDING
from rollouts.evaluation.words import in_words
from rollouts.forecasts.outlook import Outlook
from rollouts.models import Rollout, RolloutStage, StageStatus
from rollouts.selectors import current_stage
from rollouts.states import Status

_SHOWN = {
    StageStatus.PENDING: "to come",
    StageStatus.ACTIVE: "present",
    StageStatus.COMPLETED: "done",
    StageStatus.ROLLED_BACK: "rolled back",
    StageStatus.SKIPPED: "skipped",
}


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    weight: int
    status: str
    shown: str
    note: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the rollout ended or is held, and what to do. `kind` is `problem` or `notice`."""

    kind: str
    title: str
    text: str
    at: datetime | None = None


def heading(row: Rollout, figures: Mapping[str, Any], outlook: Outlook | None) -> str:
    stage, count = current_stage(row), len(row.stages.all())
    target, baseline = f"version {row.target_version.number}", f"version {row.baseline_version.number}"
    match Status(row.status):
        case Status.PENDING:
            return f"Not started · every request gets {baseline}"
        case Status.PAUSED:
            return f"Paused at stage {row.current_stage} of {count} · requests get no managed prompt"
        case Status.COMPLETED:
            return f"Completed · {target} is served to everybody"
        case Status.ROLLED_BACK:
            return f"Rolled back · {baseline} is served to everybody"
        case Status.RUNNING:
            share = f"{stage.weight} %" if stage else ""
            return f"Stage {row.current_stage} of {count} · {share} · {_needs(figures, outlook)}"


def is_held(figures: Mapping[str, Any]) -> bool:
    return figures["reason"] in HOLDING and figures["decision"] == Decision.WAIT


def _needs(figures: Mapping[str, Any], outlook: Outlook | None) -> str:
    if is_held(figures):
        return "held"
    if outlook is None:
        return "waits"
    forecast = outlook.forecast
    missing, minutes = forecast.missing_requests, forecast.minutes_to_minima
    if missing:
        takes = "none came today" if minutes is None else f"about {in_words(minutes)}"
        return f"needs {missing:,} more request{'' if missing == 1 else 's'}, {takes}"
    if minutes:
        return f"needs {in_words(minutes)} more"
    if forecast.evidence_decides:
        return "held by an evaluator" if forecast.stuck else "waits until it is certain"
    return "has all it needs"


def obstacle(row: Rollout, figures: Mapping[str, Any], names: Mapping[str, str]) -> Obstacle | None:
    """Returns None unless the rollout was rolled back or is held; `names` are by actor."""
    text = figures["explanation"]
    if row.status == Status.ROLLED_BACK:
        move = list(row.transitions.all())[-1]
        return Obstacle(
            "problem", f"Rolled back by {names[move.actor]}", move.reason or "No reason was given.", row.ended_at
        )
    if row.status != Status.RUNNING:
        return None
    if figures["decision"] == Decision.ROLL_BACK:
        return Obstacle("problem", "The verdict is to roll it back, which a person decides here", text)
    stage = current_stage(row)
    if is_held(figures):
        return Obstacle("notice", f"Held at {stage.weight if stage else 0} %", text)
    if figures["overdue"]:
        return Obstacle("notice", "Waits a day longer than its minima ask for", text)
    return None


def steps(row: Rollout) -> Sequence[Step]:
    return [_step(stage, stage.status) for stage in row.stages.all()]


def _step(stage: RolloutStage, status: StageStatus) -> Step:
    if stage.entered_at and stage.left_at:
        note = in_words((stage.left_at - stage.entered_at).total_seconds() / 60)
    else:
        minima = [f"{stage.min_duration_minutes:,} min"]
        if stage.min_requests:
            minima.append(f"{stage.min_requests:,} requests")
        if stage.settle_minutes:
            minima.append(f"{stage.settle_minutes:,} min to settle")
        note = ", ".join(minima)
    return Step(stage.number, stage.weight, status.value, _SHOWN[status], note)
