"""A worker that is killed in the middle of an experiment: the next one makes what is missing, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from analytics.request_log.record import Outcome
from analytics.spool.interrupted import record_interrupted
from gateway.models import Experiment, ExperimentScore
from integrations.models import ModelPrice
from tests.factories.evaluators import make_evaluator
from tests.fakes.scripted import answer, hang
from tests.gateway.experiments.conftest import Scene, run_all
from tests.gateway.spooled import spooled_entries

_WORK = "from gateway.experiments.run import run_due_experiment; run_due_experiment()"
_ITEMS, _DONE, _UNDER_WAY = 8, 2, 4


def _database_url() -> str:
    """Returns the address of the test's own database, which is one of PostgreSQL: no other process sees SQLite's."""
    given: dict[str, Any] = connection.settings_dict
    return f"postgresql://{given['USER']}@/{given['NAME']}?host={given['HOST']}&port={given['PORT']}"


def worker_process(folder: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "DATABASE_URL": _database_url(),
        "SPOOL_DIR": str(folder / "spool-of-the-worker"),
    }
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "shell", "-c", _WORK]
    return subprocess.Popen(command, env=environment)


def check_interrupted(spool: Path) -> None:
    """Checks that the calls under way are in the log as the experiment's, at the estimated cost of their prompts."""
    assert record_interrupted(spool) == _UNDER_WAY
    records = [entry.record for entry in spooled_entries(spool)]
    cut_off = [record for record in records if record.outcome is Outcome.INTERRUPTED]
    assert len(cut_off) == _UNDER_WAY
    assert {record.source for record in cut_off} == {"experiment"}
    assert all(record.tokens_estimated and record.prompt_tokens for record in cut_off)
    assert all(Decimal(record.cost_usd) == record.prompt_tokens * Decimal("0.0000025") for record in cut_off)


@pytest.mark.parametrize(
    "scene", [[*[answer("Tomorrow.")] * _DONE, *[hang] * _UNDER_WAY, answer("Today.")]], indirect=True
)
def test_worker__killed_in_the_middle__every_item_is_answered_and_scored_once(scene: Scene, tmp_path: Path) -> None:
    ModelPrice.objects.create(
        provider="openai", model="gpt-4o", source="manual", input_cost_per_1m="2.5", output_cost_per_1m="10"
    )
    contains = make_evaluator(scene.project, value="tomorrow")
    dataset = scene.dataset(*(f"Question {number}" for number in range(_ITEMS)))
    made = scene.create({}, dataset_id=str(dataset.pk), evaluators=[{"evaluator_id": str(contains.pk)}])
    worker = worker_process(tmp_path)
    try:
        scene.script.wait_for(_DONE + _UNDER_WAY)
    finally:
        worker.kill()
        worker.wait()
    assert scene.experiment(made["id"])["done_count"] == _DONE
    check_interrupted(tmp_path / "spool-of-the-worker")
    Experiment.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))

    run_all()

    found = scene.experiment(made["id"])
    assert (found["state"], found["done_count"]) == ("completed", _ITEMS)
    assert len(scene.sent()) == _ITEMS + _UNDER_WAY
    assert ExperimentScore.objects.count() == _ITEMS
    texts = [item["answers"][0]["message"]["content"] for item in scene.items(made["id"])]
    assert sorted(texts) == ["Today."] * (_ITEMS - _DONE) + ["Tomorrow."] * _DONE
