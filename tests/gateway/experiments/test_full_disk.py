"""Experiments on a disk that fills up: each call of the provider has its record, and none is made without a place."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from analytics.spool.counters import read_losses
from gateway.experiments.run import run_due_experiment
from gateway.models import Experiment
from tests.factories.evaluators import make_evaluator
from tests.fakes.scripted import Step, answer
from tests.fakes.upstream import Connection, Received
from tests.gateway.experiments.conftest import Scene, run_all
from tests.gateway.spooled import spooled_entries
from tests.small_disk import SmallDisk
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

_ITEMS = 30


def filling(disk: SmallDisk, at: int) -> Step:
    """Returns a step that answers, and fills the disk with the request number `at`."""
    count = 0

    async def step(request: Received, connection: Connection) -> None:
        nonlocal count
        count += 1
        if count == at:
            disk.fill()
        await answer("Tomorrow.")(request, connection)

    return step


def begin(scene: Scene) -> str:
    contains = make_evaluator(scene.project, value="tomorrow")
    dataset = scene.dataset(*(f"Question {number}" for number in range(_ITEMS)))
    made = scene.create({}, dataset_id=str(dataset.pk), evaluators=[{"evaluator_id": str(contains.pk)}])
    return str(made["id"])


def test_experiment__disk_fills_up_and_is_freed__every_call_of_the_provider_has_its_record(
    scene: Scene, disk: SmallDisk, settings: Settings
) -> None:
    scene.script.steps[:] = [filling(disk, at=7)]
    experiment_id = begin(scene)

    run_all()
    when_full = len(scene.sent())
    for _ in range(3):
        Experiment.objects.update(claimed_until=None)
        run_due_experiment()
    assert len(scene.sent()) == when_full < _ITEMS

    disk.free()
    Experiment.objects.update(claimed_until=None)
    run_all()

    assert scene.experiment(experiment_id)["state"] == "completed"
    wait_until(lambda: read_losses(settings.SPOOL_DIR).queued == 0, what="the records that waited in memory")
    recorded = {entry.record.request_id for entry in spooled_entries(settings.SPOOL_DIR)}
    assert len(recorded) == len(scene.sent()) == _ITEMS
    assert read_losses(settings.SPOOL_DIR).lost == 0


def test_experiment__process_began_on_a_full_disk__no_model_is_asked(scene: Scene, disk: SmallDisk) -> None:
    begin(scene)
    disk.fill()

    assert run_due_experiment() is False

    assert scene.sent() == []
