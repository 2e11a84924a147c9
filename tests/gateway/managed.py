"""Managed prompts of a running service, made through its database."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.fakes.scripted import Script
from tests.gateway.service import Gateway


@dataclass
class Rollout:
    gateway: Gateway
    id: str

    def move(self, move: str) -> None:
        """Moves a rollout: `start`, `pause`, `promote`, `roll_back` or `complete`."""
        project_id = self.gateway.project_id
        self.gateway.service.seeder.call("move_rollout", project_id=project_id, rollout_id=self.id, move=move)


@dataclass
class Prompt:
    """A prompt config of a project, with its `version_ids` in the order of their numbers."""

    gateway: Gateway
    name: str
    config_id: str
    version_ids: list[str]

    def add(self, system_prompt: str, **content: Any) -> str:
        """Adds a version and returns its id."""
        made = self._call("add_prompt_version", content={"system_prompt": system_prompt, **content})
        self.version_ids.append(made["id"])
        return self.version_ids[-1]

    def activate(self, version_id: str) -> None:
        self._call("activate_prompt", version_id=version_id)

    def label(self, name: str, number: int) -> None:
        """Points a label at the version of this number."""
        self._call("set_label", name=name, number=number)

    def delete(self) -> None:
        self._call("delete_prompt")

    def roll_out(self, version_id: str, *weights: int, allocation_type: str = "random") -> Rollout:
        """Starts a rollout to the version, at the first of the weights."""
        made = self._call("start_rollout", version_id=version_id, weights=weights, allocation_type=allocation_type)
        return Rollout(self.gateway, made["rollout_id"])

    def _call(self, do: str, **command: Any) -> dict[str, Any]:
        seeder = self.gateway.service.seeder
        return seeder.call(do, project_id=self.gateway.project_id, config_id=self.config_id, **command)


def make_prompt(gateway: Gateway, *system_prompts: str, name: str = "support", **content: Any) -> Prompt:
    """Makes a config with a version for each text, all with the same `content`; the first is active."""
    versions = [{"system_prompt": text, **content} for text in system_prompts]
    made = gateway.service.seeder.call("make_prompt", project_id=gateway.project_id, name=name, versions=versions)
    return Prompt(gateway, name, made["config_id"], made["version_ids"])


def last_sent(script: Script) -> dict[str, Any]:
    """Returns the body of the latest request that the provider received."""
    sent: dict[str, Any] = json.loads(script.received[-1].body)
    return sent
