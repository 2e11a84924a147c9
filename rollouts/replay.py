"""Reaches a stored verdict again, from the state at the start and the minutes that were seen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rollouts import evaluation
from rollouts.evaluation import State, from_json
from rollouts.figures import verdict_at, verdict_figures
from rollouts.minutes import stored_minutes
from rollouts.models import Rollout


def replayed_state(rollout: Rollout, until: datetime | None = None) -> State:
    """The state after the minutes before `until`, or after all. Raises ValueError when none was ever evaluated."""
    if rollout.evaluation.initial is None:
        raise ValueError("this rollout was never evaluated")
    return evaluation.replay(from_json(State, rollout.evaluation.initial), stored_minutes(rollout, until))


def replayed_figures(rollout: Rollout, figures: Mapping[str, Any]) -> dict[str, Any]:
    """What a verdict's figures are when it is reached again: equal to `figures` unless rows or formulas changed."""
    through = datetime.fromisoformat(figures["through"])
    state = replayed_state(rollout, through)
    stage, elapsed = rollout.stages.get(number=figures["stage"]), figures["elapsed_minutes"]
    verdict = verdict_at(state, stage, elapsed_minutes=elapsed)
    return verdict_figures(
        state,
        verdict,
        stage,
        elapsed_minutes=elapsed,
        through=through,
        earlier_rollbacks=figures.get("earlier_rollbacks", 0),
    )
