"""The managed prompts of a project as requests meet them: compiled, and with the rollout that decides between two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from prompts.selectors import PromptVersionRecord, prompt_configs


@dataclass(frozen=True, slots=True)
class ManagedPrompt:
    """A prompt config. `active` is None until it has a version.

    `names` are the variables that one of its versions takes: sending them is no mistake, whichever version is served.
    """

    config_id: str
    name: str
    active: PromptVersionRecord | None
    names: frozenset[str]


def managed_prompts(project_id: UUID) -> Mapping[str, ManagedPrompt]:
    """By the config's name. Reads the SQL database."""
    return {
        name: ManagedPrompt(
            config_id=str(config.id),
            name=name,
            active=config.active,
            names=frozenset() if config.active is None else config.active.template.names,
        )
        for name, config in prompt_configs(project_id).items()
    }
