from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from prompts.content.variable_names import variable_names
from prompts.selectors import PromptVersionRecord, labelled_versions, prompt_configs, version_records
from rollouts.allocation import Allocation, AllocationType
from rollouts.selectors import RolloutRecord, running_rollouts
from rollouts.states import Status


class PromptUse(msgspec.Struct, frozen=True, gc=False):
    """The managed prompt that a request named, and its injected version: 0 if the prompt was skipped.

    A running rollout sets the fields from `rollout_id` on. `unit` is 0 if the variant was forced; `fallback`: the
    request lacks the unit by which the rollout allocates.
    """

    config_id: str = ""
    name: str = ""
    version: int = 0
    rollout_id: str = ""
    stage: int = 0
    variant: str = ""
    unit: int = 0
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class RunningRollout:
    """A rollout between two versions: `weight` percent of the units get the target, none while it is `paused`."""

    id: str
    stage: int
    weight: int
    allocation_type: AllocationType
    paused: bool
    baseline: PromptVersionRecord
    target: PromptVersionRecord
    # The allocations that `variant` has computed for users and sessions.
    drawn: dict[str, Allocation] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ManagedPrompt:
    """A prompt config. `active` is None until it has a version.

    `names` are the variables of all its versions: sending one is no mistake, whichever version is served.
    `last_version` is the highest number, `labels` maps the name of each label.
    """

    config_id: str
    name: str
    active: PromptVersionRecord | None
    names: frozenset[str] = frozenset()
    rollout: RunningRollout | None = None
    last_version: int = 0
    labels: Mapping[str, PromptVersionRecord] = field(default_factory=dict)
    # The texts that `prompt` has rendered of its versions.
    rendered: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False, compare=False)


def known_version(prompt: ManagedPrompt, number: int) -> PromptVersionRecord | None:
    """Returns a version that every snapshot holds: active, in the rollout, or with a label. None for another one."""
    rollout = prompt.rollout
    held = (prompt.active, rollout.baseline, rollout.target) if rollout is not None else (prompt.active,)
    return next(
        (version for version in (*held, *prompt.labels.values()) if version is not None and version.number == number),
        None,
    )


def managed_prompts(project_id: UUID) -> Mapping[str, ManagedPrompt]:
    configs = prompt_configs(project_id)
    if not configs:
        return {}
    rollouts = {config_id: _running(record) for config_id, record in running_rollouts(project_id).items()}
    names = variable_names(project_id)
    labels = labelled_versions(project_id)
    records = version_records({version_id for of_config in labels.values() for version_id in of_config.values()})
    return {
        name: ManagedPrompt(
            config_id=str(config.id),
            name=name,
            active=config.active,
            names=_names(config.active, rollouts.get(config.id)).union(
                *(names.get(config_id, ()) for config_id in (config.id, *_included(config.active)))
            ),
            rollout=rollouts.get(config.id),
            last_version=config.last_version,
            labels={
                label: records[version_id]
                for label, version_id in labels.get(config.id, {}).items()
                if version_id in records
            },
        )
        for name, config in configs.items()
    }


def _running(record: RolloutRecord) -> RunningRollout | None:
    versions = version_records({record.baseline_version_id, record.target_version_id})
    baseline, target = versions.get(record.baseline_version_id), versions.get(record.target_version_id)
    if baseline is None or target is None:
        # The version was deleted with its config since the rollout was read.
        return None
    return RunningRollout(
        id=record.salt,
        stage=record.stage,
        weight=record.weight,
        allocation_type=record.allocation_type,
        paused=record.status is Status.PAUSED,
        baseline=baseline,
        target=target,
    )


def _included(active: PromptVersionRecord | None) -> list[UUID]:
    """Returns the configs that a version includes: sending the variables of their other versions is no mistake."""
    return [config_id for config_id, _ in active.included] if active is not None else []


def _names(active: PromptVersionRecord | None, rollout: RunningRollout | None) -> frozenset[str]:
    versions = (active, rollout.baseline, rollout.target) if rollout is not None else (active,)
    return frozenset().union(*(version.template.names for version in versions if version is not None))
