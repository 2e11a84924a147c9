from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any
from uuid import UUID

from rollouts.errors import GateNotPassedError
from rollouts.gate.registry import Finding, Question, check_of
from rollouts.models import Gate, Rollout, RolloutTransition
from rollouts.states import Status

NEVER_OPENED = "The rollout ended before its gate was passed."


class GateState(StrEnum):
    NONE = "none"
    PASSED = "passed"
    NOT_PASSED = "not_passed"
    OVERRIDDEN = "overridden"


@dataclass(frozen=True, slots=True)
class Standing:
    """`reason` says what was shown or is missing; for an overridden gate it is the reason of the person `by`, and
    `missing` what was missing then. `shadow` are the figures of a shadow."""

    state: GateState
    reason: str = ""
    experiment_id: UUID | None = None
    by: str = ""
    missing: str = ""
    shadow: Mapping[str, Any] = field(default_factory=dict)


def opened(row: Rollout, *, reason: str, override: bool) -> Mapping[str, Any]:
    """Returns the figures of the transition that opens the gate, empty for a rollout without a gate. Findings hold
    until the transaction ends. Raises GateNotPassedError."""
    if row.gate == Gate.NONE:
        return {}
    [found] = check_of(row.gate)([_question(row)], holds=True)
    if not found.is_passed and not override:
        raise GateNotPassedError(found.reason, found.experiment_id)
    state = GateState.PASSED if found.is_passed else GateState.OVERRIDDEN
    told = {"reason": found.reason} if found.is_passed else {"reason": reason, "missing": found.reason}
    return {
        "gate": {
            "kind": row.gate,
            "state": state.value,
            "experiment_id": _text(found.experiment_id),
            "dataset_id": _text(found.dataset_id),
            "dataset_version": found.dataset_version,
            **({"shadow": found.shadow} if found.shadow else {}),
            **told,
        }
    }


def standings(rows: Iterable[Rollout], first_moves: Mapping[UUID, RolloutTransition]) -> dict[UUID, Standing]:
    """Returns gates by rollout: as they were at the start for rollouts that have begun, as they are now for the others.

    `first_moves` are the transitions out of pending. One query per project and kind of gate of a pending rollout.
    """
    found: dict[UUID, Standing] = {}
    waiting: list[Rollout] = []
    for row in rows:
        if row.gate == Gate.NONE:
            found[row.pk] = Standing(GateState.NONE)
        elif row.status == Status.PENDING:
            waiting.append(row)
        else:
            found[row.pk] = _kept(first_moves.get(row.pk))
    return found | _looked_up(waiting)


def _looked_up(rows: list[Rollout]) -> dict[UUID, Standing]:
    found: dict[UUID, Standing] = {}
    by_check = sorted(rows, key=lambda row: (row.gate, str(row.project_id)))
    for (kind, _), group in groupby(by_check, key=lambda row: (row.gate, str(row.project_id))):
        asked = list(group)
        answers = check_of(kind)([_question(row) for row in asked])
        found |= {row.pk: _as_it_is(answer) for row, answer in zip(asked, answers, strict=True)}
    return found


def _as_it_is(found: Finding) -> Standing:
    state = GateState.PASSED if found.is_passed else GateState.NOT_PASSED
    return Standing(state, found.reason, found.experiment_id, shadow=found.shadow)


def _kept(move: RolloutTransition | None) -> Standing:
    gate = move.figures.get("gate") if move else None
    if move is None or not gate:
        return Standing(GateState.NOT_PASSED, NEVER_OPENED)
    state = GateState(gate["state"])
    return Standing(
        state,
        gate["reason"],
        UUID(gate["experiment_id"]) if gate["experiment_id"] else None,
        move.actor if state is GateState.OVERRIDDEN else "",
        gate.get("missing", ""),
        gate.get("shadow", {}),
    )


def _question(row: Rollout) -> Question:
    return Question(row.project_id, row.baseline_version, row.target_version, row.gate_dataset_id, row.pk)


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)
