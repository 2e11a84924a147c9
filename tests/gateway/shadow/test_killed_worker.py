"""A worker that is killed in the middle of a shadow: the next one makes what is missing, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.shadow import follow as following
from tests.fakes.scripted import hang
from tests.gateway.experiments.conftest import run_all
from tests.gateway.experiments.test_killed_worker import worker_process
from tests.gateway.shadow.conftest import BETTER, ShadowScene, follow

_ITEMS, _UNDER_WAY = 6, 4


@pytest.mark.parametrize("scene", [[*[hang] * _UNDER_WAY, BETTER]], indirect=True)
def test_worker__killed_in_the_middle__each_request_has_one_answer(shadow: ShadowScene, tmp_path: Path) -> None:
    shadow.create()
    shadow.served_many(_ITEMS)
    follow()
    worker = worker_process(tmp_path)
    try:
        shadow.scene.script.wait_for(_UNDER_WAY)
    finally:
        worker.kill()
        worker.wait()
    Experiment.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))

    run_all()

    assert ExperimentAnswer.objects.filter(candidate=1, state="done", error_code="").count() == _ITEMS
    assert ExperimentScore.objects.count() == _ITEMS
    assert len(shadow.sent_answers()) == _ITEMS + _UNDER_WAY
    # What the dead worker had reserved stays so, since its provider may have counted the requests.
    assert Experiment.objects.get().reserved_usd > 0


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_follower__dies_while_it_writes__takes_each_request_once(
    shadow: ShadowScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow.create()
    shadow.served_many(3)

    def dies(*_: object) -> None:
        raise ConnectionError("The worker is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(following, "_add", dies)
        with pytest.raises(ConnectionError):
            follow()
    assert ExperimentItem.objects.count() == 0

    follow()
    follow()

    assert ExperimentItem.objects.count() == len(set(ExperimentItem.objects.values_list("request_id", flat=True))) == 3
