"""The loader's view of a project's prompts and rollouts."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.snapshot.prompts import managed_prompts
from prompts.services import activate_version
from rollouts.allocation import AllocationType
from rollouts.services import NewRollout, complete_rollout, create_rollout, pause_rollout, start_rollout
from rollouts.states import Stage
from tests.factories.core import make_project
from tests.factories.prompts import make_config, make_version

pytestmark = pytest.mark.django_db


def test_managed_prompts__no_configs__one_query() -> None:
    project = make_project()

    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert managed_prompts(project.pk) == {}

    assert len(queries) == 1


def test_managed_prompts__known_versions__four_queries_however_many_configs() -> None:
    project = make_project()
    for name in ("a", "b", "c"):
        make_config(project, name, versions=2)
    managed_prompts(project.pk)
    held = managed_prompts(project.pk)

    with CaptureQueriesContext(connection) as queries:
        assert managed_prompts(project.pk) == held

    assert len(queries) == 4


def test_managed_prompts__rollout__pending_running_paused_completed() -> None:
    config = make_config(name="a")
    first, second = make_version(config, "One."), make_version(config, "Two.")
    new = NewRollout(
        config_id=config.pk,
        target_version_id=second.pk,
        name="r",
        allocation_type=AllocationType.SESSION_STICKY,
        stages=[Stage(25, 0, 0), Stage(100, 0, 0)],
    )
    rollout = create_rollout(project_id=config.project_id, new=new, actor="test")
    its: dict[str, Any] = {"project_id": config.project_id, "rollout_id": rollout.pk, "actor": "test"}

    assert managed_prompts(config.project_id)["a"].rollout is None

    start_rollout(**its)
    running = managed_prompts(config.project_id)["a"].rollout
    assert running is not None
    assert (running.id, running.stage, running.weight, running.paused) == (str(rollout.pk), 1, 25, False)
    assert running.allocation_type is AllocationType.SESSION_STICKY
    assert (running.baseline.id, running.target.id) == (first.pk, second.pk)

    pause_rollout(**its)
    paused = managed_prompts(config.project_id)["a"].rollout
    assert paused is not None
    assert paused.paused

    complete_rollout(**its)
    done = managed_prompts(config.project_id)["a"]
    assert done.rollout is None
    assert done.active is not None
    assert done.active.number == 2


def test_managed_prompts__variable_names__of_all_versions_whichever_is_active() -> None:
    config = make_config(name="a")
    make_version(config, "{{one}}", variables=[{"name": "extra"}])
    second = make_version(config, "{{two}}")

    assert managed_prompts(config.project_id)["a"].names == {"one", "two", "extra"}

    activate_version(project_id=config.project_id, config_id=config.pk, version_id=second.pk, actor="test")
    make_version(config, "{{three}}")
    assert managed_prompts(config.project_id)["a"].names == {"one", "two", "extra", "three"}


def test_managed_prompts__variable_names__of_the_latest_fifty_and_the_active_version() -> None:
    config = make_config(name="a")
    for number in range(1, 53):
        make_version(config, f"{{{{v{number}}}}}")

    names = managed_prompts(config.project_id)["a"].names

    assert names == {"v1", *(f"v{number}" for number in range(3, 53))}
