from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from config.celery import app
from core.processes import background_tasks
from core.processes.monitoring import TASKS


def test_task__keeps_failing__is_counted_and_an_alarm_until_it_succeeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(background_tasks, "notices_dir", lambda: tmp_path)
    monkeypatch.setattr(background_tasks, "_tally", background_tasks._Tally())
    runs = iter([RuntimeError(), RuntimeError(), RuntimeError(), None])

    def work() -> None:
        if (error := next(runs)) is not None:
            raise error

    task = app.task(name="tests.work")(work)
    try:
        for _ in range(3):
            task.apply()
        [alarm] = TASKS.alarms(TASKS.ask())
        task.apply()
    finally:
        app.tasks.pop("tests.work")

    assert (alarm.kind, alarm.subject) == ("background_task_failed", "celery.tests.work")
    assert list(TASKS.alarms(TASKS.ask())) == []
    [counted] = [sample.value for metric in TASKS.metrics(TASKS.ask()) for sample in metric.samples]
    assert counted == 3


def test_beat__sends_tasks_that_there_are() -> None:
    app.loader.import_default_modules()
    assert {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= set(app.tasks)
    assert len(settings.CELERY_BEAT_SCHEDULE) <= 10
