from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.rollouts.links import Link
from core.audit.actors import actor_name
from core.ui.pages import Visit
from rollouts.gate.state import GateState, Standing
from rollouts.models import Gate, Rollout
from rollouts.selectors import gates
from rollouts.serializers import gate_shown
from rollouts.states import Status

_SHOWN: Mapping[GateState, str] = {
    GateState.PASSED: "Passed",
    GateState.NOT_PASSED: "Not passed",
    GateState.OVERRIDDEN: "Overridden",
}


def gate(visit: Visit, row: Rollout) -> Mapping[str, Any]:
    standing = gates([row])[row.pk]
    shown = gate_shown(row, standing)
    return {
        "row": row,
        "state": _SHOWN[standing.state],
        "is_closed": standing.state is GateState.NOT_PASSED,
        "reason": standing.reason,
        "missing": standing.missing,
        "by": actor_name(standing.by),
        "dataset": shown["dataset"],
        "shadow": shown["shadow"],
        "links": [link for link in _links(visit, row, standing) if link.href],
    }


def is_closed(row: Rollout) -> bool:
    """Returns whether a gate keeps this row of `get_rollout` from starting."""
    return row.status == Status.PENDING and gates([row])[row.pk].state is GateState.NOT_PASSED


def _links(visit: Visit, row: Rollout, standing: Standing) -> list[Link]:
    found = []
    if standing.experiment_id:
        name = "The answers side by side" if row.gate == Gate.SHADOW else "The experiment"
        found.append(Link(name, visit.link_if_there("experiment", standing.experiment_id)))
    if row.gate_dataset_id:
        found.append(Link("The data set", visit.link_if_there("dataset", row.project_id, row.gate_dataset_id)))
    if row.status == Status.PENDING and row.gate == Gate.EXPERIMENT:
        versions = [row.baseline_version_id, row.target_version_id]
        filled = visit.link_if_there("experiment_form", dataset=row.gate_dataset_id, version=versions)
        found.append(Link("New experiment of both versions", filled))
    return found
