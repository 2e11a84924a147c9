from __future__ import annotations

from itertools import count
from typing import Any

from prompts.models import PromptConfig
from rollouts.models import Rollout
from rollouts.services import NewRollout, create_rollout, start_rollout
from rollouts.states import Stage
from tests.factories.prompts import make_config

_serial = count(1)

STAGES = (Stage(10, 0, 0), Stage(50, 0, 0), Stage(100, 0, 0))


def make_rollout(config: PromptConfig | None = None, *, started: bool = False, **changes: Any) -> Rollout:
    config = config or make_config(versions=2)
    newest = config.versions.order_by("-number")[0]
    defaults: dict[str, Any] = {"name": f"rollout-{next(_serial)}", "stages": STAGES}
    rollout = create_rollout(
        project_id=config.project_id,
        new=NewRollout(config_id=config.pk, target_version_id=newest.pk, **{**defaults, **changes}),
        actor="test",
    )
    if started:
        return start_rollout(project_id=config.project_id, rollout_id=rollout.pk, actor="test")
    return rollout
