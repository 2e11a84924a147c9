"""`manage.py evaluate_rollouts`, and the schedule of the evaluation."""

from __future__ import annotations

from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from rollouts.models import RolloutMinute
from rollouts.tasks import evaluate_rollouts
from tests.rollouts.automatic import automatic, evaluation
from tests.rollouts.request_log import RequestLog

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock", "info_logs")]


def test_beat__every_minute__names_the_task(settings: Settings) -> None:
    entry = settings.CELERY_BEAT_SCHEDULE["evaluate-rollouts"]
    assert (entry["task"], entry["schedule"]) == (evaluate_rollouts.name, 60.0)


class TestCommand:
    def run(self, *arguments: str) -> str:
        out = StringIO()
        call_command("evaluate_rollouts", *arguments, stdout=out)
        return out.getvalue()

    def test_nothing_running__says_so(self) -> None:
        assert "Nothing to evaluate" in self.run()

    def test_dry_run__reported_and_nothing_stored(self, log: RequestLog) -> None:
        rollout = automatic()
        log.add(rollout, 5, target=(40, 30), baseline=(40, 0))
        assert "would roll back" in self.run("--dry-run")
        assert (evaluation(rollout).state, RolloutMinute.objects.count()) == (None, 0)
        rollout.refresh_from_db()
        assert rollout.status == "running"

    def test_one_rollout__only_that_one(self, log: RequestLog) -> None:
        rollout, other = automatic(), automatic()
        log.add(rollout, 5, target=(40, 30), baseline=(40, 0))
        assert "failing, roll back." in self.run("--rollout", str(rollout.pk))
        assert evaluation(other).decided_at is None

    def test_unknown__error(self) -> None:
        with pytest.raises(CommandError, match="no rollout"):
            self.run("--rollout", str(uuid4()))

    def test_analytics_away__error(self, log: RequestLog) -> None:
        log.away = True
        with pytest.raises(CommandError, match="away"):
            self.run("--rollout", str(automatic().pk))
