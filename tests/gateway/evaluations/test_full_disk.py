"""Judges on a full disk are not asked, whether for online evaluations or for calibrations, and are once it is free."""

from __future__ import annotations

import pytest
from django.utils import timezone
from pytest_django import Settings

from analytics.spool.counters import read_losses
from gateway.evaluations.labelled import score_labelled
from gateway.evaluations.online import judge_due
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.evaluations.online import ends, graded, judge, judge_all, take_samples, without_waits
from tests.gateway.evaluations.test_labelled import judge as labelled_judge
from tests.gateway.evaluations.test_labelled import labelled
from tests.gateway.spooled import spooled_entries
from tests.small_disk import SmallDisk
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

_ANSWERS = 30


def filling(disk: SmallDisk) -> Step:
    """Returns a step that judges, and fills the disk as soon as the first judge is asked."""

    async def step(request: Received, connection: Connection) -> None:
        disk.fill()
        await graded()(request, connection)

    return step


def test_judges__disk_fills_up_and_is_freed__every_call_of_the_provider_has_its_record(
    scene: Scene, disk: SmallDisk, settings: Settings
) -> None:
    scene.script.steps[:] = [filling(disk), graded()]
    evaluation_id = judge(scene)
    for _ in range(_ANSWERS):
        scene.answered()
    take_samples()

    judge_all()
    when_full = len(scene.script.received)
    without_waits()
    assert judge_due() is False
    assert len(scene.script.received) == when_full < _ANSWERS

    disk.free()
    without_waits()
    judge_all()

    assert ends(evaluation_id) == [("done", "")] * _ANSWERS
    wait_until(lambda: read_losses(settings.SPOOL_DIR).queued == 0, what="the records that waited in memory")
    recorded = {entry.record.request_id for entry in spooled_entries(settings.SPOOL_DIR)}
    assert len(recorded) == len(scene.script.received) == _ANSWERS
    assert read_losses(settings.SPOOL_DIR).lost == 0


def test_calibration__process_began_on_a_full_disk__no_judge_is_asked(scene: Scene, disk: SmallDisk) -> None:
    labelled(scene, labelled_judge(scene), scene.answered())
    disk.fill()

    assert score_labelled(timezone.now()) is False

    assert scene.script.received == []
