from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from prompts.errors import RolloutActiveError
from prompts.models import PromptActivation
from prompts.services import activate_version, delete_config
from rollouts.errors import RolloutExistsError
from rollouts.models import Rollout, RolloutTransition
from rollouts.selectors import RolloutRecord, get_rollout, running_rollouts
from rollouts.services import (
    complete_rollout,
    pause_rollout,
    promote_rollout,
    roll_back_rollout,
    start_rollout,
)
from rollouts.states import Status
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout

pytestmark = pytest.mark.django_db


def ids(rollout: Rollout) -> dict[str, Any]:
    return {"project_id": rollout.project_id, "rollout_id": rollout.pk, "actor": "key:1"}


def stage_times(rollout: Rollout) -> list[tuple[bool, bool]]:
    return [(s.entered_at is not None, s.left_at is not None) for s in rollout.stages.all()]


def test_create__another_is_active__refused_also_by_the_database() -> None:
    rollout = make_rollout()
    with pytest.raises(RolloutExistsError):
        make_rollout(rollout.config)
    rollout.pk, rollout._state.adding = None, True
    with pytest.raises(IntegrityError), transaction.atomic():
        rollout.save()


def test_whole_life__every_move_recorded_and_the_target_active() -> None:
    rollout = make_rollout()
    start_rollout(**ids(rollout), reason="go")
    for _ in range(2):
        promote_rollout(**ids(rollout))
    pause_rollout(**ids(rollout))
    ended = promote_rollout(**ids(rollout), reason="done")

    assert (ended.status, ended.current_stage, ended.running_since) == (Status.COMPLETED, 3, None)
    assert ended.ended_at is not None
    config = ended.config
    config.refresh_from_db()
    assert (config.active_version_id, config.has_active_rollout) == (rollout.target_version_id, False)
    assert PromptActivation.objects.filter(config=config, kind="rollout", actor="key:1").count() == 1
    moves = RolloutTransition.objects.filter(rollout=rollout).values_list(
        "action", "from_status", "to_status", "from_stage", "to_stage", "reason"
    )
    assert list(moves) == [
        ("create", "", "pending", 0, 0, ""),
        ("start", "pending", "running", 0, 1, "go"),
        ("promote", "running", "running", 1, 2, ""),
        ("promote", "running", "running", 2, 3, ""),
        ("pause", "running", "paused", 3, 3, ""),
        ("promote", "paused", "completed", 3, 3, "done"),
    ]
    assert stage_times(rollout) == [(True, True)] * 3


def test_roll_back__at_the_second_stage__baseline_stays_active() -> None:
    rollout = make_rollout(started=True)
    promote_rollout(**ids(rollout))
    roll_back_rollout(**ids(rollout))
    config = rollout.config
    config.refresh_from_db()
    assert (config.active_version_id, config.has_active_rollout) == (rollout.baseline_version_id, False)
    assert stage_times(rollout) == [(True, True), (True, True), (False, False)]
    assert running_rollouts(rollout.project_id) == {}
    assert make_rollout(config).status == Status.PENDING


@pytest.mark.parametrize("move", [roll_back_rollout, complete_rollout])
def test_end__pending__allowed(move: Callable[..., Rollout]) -> None:
    rollout = make_rollout()
    ended = move(**ids(rollout))
    assert ended.status in (Status.COMPLETED, Status.ROLLED_BACK)
    assert (ended.started_at, stage_times(rollout)) == (None, [(False, False)] * 3)


def test_pause__time_in_stage__leaves_the_pause_out() -> None:
    rollout = make_rollout(started=True)
    earlier = timezone.now() - timedelta(minutes=10)
    Rollout.objects.filter(pk=rollout.pk).update(running_since=earlier)
    assert pause_rollout(**ids(rollout)).stage_seconds == pytest.approx(600, abs=30)
    Rollout.objects.filter(pk=rollout.pk).update(stage_started_at=earlier)
    row = start_rollout(**ids(rollout))
    assert row.stage_started_at == earlier
    assert row.stage_seconds == pytest.approx(600, abs=30)
    assert promote_rollout(**ids(rollout)).stage_seconds == 0


def test_config__active_rollout__neither_deleted_nor_activated() -> None:
    rollout = make_rollout(started=True)
    with pytest.raises(RolloutActiveError):
        delete_config(project_id=rollout.project_id, config_id=rollout.config_id)
    with pytest.raises(RolloutActiveError):
        activate_version(
            project_id=rollout.project_id,
            config_id=rollout.config_id,
            version_id=rollout.target_version_id,
            actor="test",
        )
    roll_back_rollout(**ids(rollout))
    delete_config(project_id=rollout.project_id, config_id=rollout.config_id)
    assert not Rollout.objects.exists()


def test_running_rollouts__running_and_paused__one_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    rollout = make_rollout(started=True)
    promote_rollout(**ids(rollout))
    make_rollout(started=True)
    make_rollout(make_config(rollout.project, versions=2))
    with django_assert_num_queries(1):
        found = running_rollouts(rollout.project_id)
    expected = RolloutRecord(
        id=rollout.pk,
        config_id=rollout.config_id,
        status=Status.RUNNING,
        weight=50,
        allocation_type=found[rollout.config_id].allocation_type,
        salt=str(rollout.pk),
        stage=2,
        baseline_version_id=rollout.baseline_version_id,
        target_version_id=rollout.target_version_id,
    )
    assert found == {rollout.config_id: expected}
    pause_rollout(**ids(rollout))
    assert running_rollouts(rollout.project_id)[rollout.config_id].status is Status.PAUSED


def test_transition__stored__never_changed() -> None:
    row = get_rollout((rollout := make_rollout()).project_id, rollout.pk).transitions.all()[0]
    with pytest.raises(TypeError):
        row.save()


def test_project__deleted_with_a_running_rollout__all_gone() -> None:
    rollout = make_rollout(started=True)
    rollout.project.delete()
    assert not Rollout.objects.exists()
    assert not RolloutTransition.objects.exists()
