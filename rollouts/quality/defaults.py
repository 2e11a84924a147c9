"""A project's own thresholds, which the settings of the gateway hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils.module_loading import import_string

from rollouts.evaluation import to_json
from rollouts.evaluation.thresholds import threshold_from

_sources: list[str] = []


def register(source: str) -> None:
    """Takes the dotted name of a function that returns the lines of a project."""
    _sources[:] = [source]


def with_thresholds(project_id: UUID, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the policy with the project's threshold of each metric for which it has none of its own."""
    read: Sequence[Callable[[UUID], Sequence[str]]] = [import_string(source) for source in _sources]
    found = dict(threshold_from(line) for lines in read for line in lines(project_id))
    thresholds = {**{metric.value: to_json(one) for metric, one in found.items()}, **policy.get("thresholds", {})}
    return {**policy, "thresholds": thresholds} if thresholds else dict(policy)
