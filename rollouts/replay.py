"""Reaches a stored verdict again from the state at the start and the stored minutes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rollouts.evaluation import formula_of, from_json
from rollouts.figures import AnyState, verdict_at, verdict_figures
from rollouts.minutes import stored_minutes
from rollouts.models import Rollout
from rollouts.policies import formula_number


def replayed_state(rollout: Rollout, until: datetime | None = None) -> AnyState:
    """Returns the state after the minutes before `until`, or after all, by the formula that the evaluation began
    with.

    Raises ValueError when the rollout was never evaluated, or by a formula that this version does not know.
    """
    if rollout.evaluation.initial is None:
        raise ValueError("this rollout was never evaluated")
    number = formula_number(rollout)
    formula = formula_of(number)
    state: AnyState = formula.replay(
        from_json(formula.State, rollout.evaluation.initial), stored_minutes(rollout, number, until)
    )
    return state


def replayed_figures(rollout: Rollout, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of a verdict that is reached again: equal to `figures` unless rows changed."""
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
