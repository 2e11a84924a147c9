"""A thousand answers that are due on one worker; a worker that is killed; many workers and one budget."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from analytics.models import EvaluationBudget, EvaluationTask, Score
from analytics.models.online_evaluations import SkipReason, TaskState
from analytics.online_evaluations import money, queue
from analytics.online_evaluations.queue import End
from tests.factories.analytics import make_entry, store
from tests.fakes.scripted import completion, hang
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.evaluations.online import detail, ends, graded, judge, judge_all, spent, take_samples
from tests.night import examples

pytestmark = pytest.mark.django_db(transaction=True)

_WORK = "from gateway.evaluations.online import judge_due; judge_due()"
_DONE, _UNDER_WAY, _ALL = 5, 16, 60


def _answers(scene: Scene, count: int) -> set[str]:
    """Stores so many answered requests; returns their ids."""
    body = json.dumps({"model": "openai/gpt-4o", "messages": [{"role": "user", "content": "When?"}]}).encode()
    answered = json.dumps(completion("At seven.")).encode()
    entries = [make_entry(body, answered, project_id=str(scene.project.pk)) for _ in range(count)]
    store(scene.spool, *entries)
    return {str(entry.record.request_id) for entry in entries}


def _worker(folder: Path) -> subprocess.Popen[bytes]:
    given: dict[str, Any] = connection.settings_dict
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{given['USER']}@/{given['NAME']}?host={given['HOST']}&port={given['PORT']}",
        "SPOOL_DIR": str(folder / "spool-of-the-worker"),
    }
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "shell", "-c", _WORK]
    return subprocess.Popen(command, env=environment)


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_many_due__one_worker__each_is_scored_once(scene: Scene) -> None:
    evaluation_id = judge(scene, monthly_budget_usd=1000)
    request_ids = _answers(scene, examples(200, 1000))
    take_samples()

    judge_all()

    assert Counter(ends(evaluation_id)) == {("done", ""): len(request_ids)}
    assert sorted(Score.objects.values_list("request_id", flat=True)) == sorted(request_ids)
    assert len(scene.script.received) == len(request_ids)
    budget = EvaluationBudget.objects.get()
    assert budget.spent_usd == spent(evaluation_id) == Decimal("0.0000975") * len(request_ids)


@pytest.mark.parametrize("scene", [[*[graded()] * _DONE, *[hang] * _UNDER_WAY, graded()]], indirect=True)
def test_worker__killed_in_the_middle__every_answer_has_one_score(scene: Scene, tmp_path: Path) -> None:
    evaluation_id = judge(scene)
    request_ids = _answers(scene, _ALL)
    take_samples()
    worker = _worker(tmp_path)
    try:
        scene.script.wait_for(_DONE + _UNDER_WAY)
    finally:
        worker.kill()
        worker.wait()
    left = EvaluationTask.objects.filter(state=TaskState.DUE, claim__isnull=False)
    reserved = sum(left.values_list("reserved_usd", flat=True), Decimal(0))
    assert reserved == EvaluationBudget.objects.get().reserved_usd > 0

    left.update(claimed_until=timezone.now() - timedelta(seconds=1))
    judge_all()

    assert Counter(ends(evaluation_id)) == {("done", ""): _ALL}
    assert sorted(Score.objects.values_list("request_id", flat=True)) == sorted(request_ids)
    budget = EvaluationBudget.objects.get()
    # What the dead worker was asking for may have been paid.
    assert budget.spent_usd == spent(evaluation_id) == reserved + Decimal("0.0000975") * _ALL
    assert budget.reserved_usd == 0
    assert detail(scene, evaluation_id)["tasks"]["missing"] == 0


def test_budget__eight_workers_at_once__is_kept_to_the_last_digit(scene: Scene) -> None:
    tasks = examples(225, 900)
    evaluation_id = judge(scene, monthly_budget_usd=0.2 * tasks / 900)
    _answers(scene, tasks)
    take_samples()
    EvaluationTask.objects.update(due_at=timezone.now())

    def work(seed: int) -> int:
        """Judges until nothing is due, by costs of chance; returns how many tasks it ended."""
        rng, ended = random.Random(seed), 0
        try:
            while True:
                now = timezone.now()
                queue.tidy(now)
                batch = queue.claim_batch(now, 7)
                if batch is None:
                    if not EvaluationTask.objects.filter(state=TaskState.DUE).exists():
                        return ended
                    continue
                for task in batch.tasks:
                    bound = Decimal(rng.randrange(1, 20_000_000)).scaleb(-10)
                    room = money.reserve(task, bound, now)
                    if room is money.Room.LATER:
                        queue.put_back(task, until=task.due_at)
                        continue
                    if room is money.Room.NONE:
                        queue.finish([End(task, TaskState.SKIPPED, SkipReason.BUDGET)], now)
                    else:
                        task.refresh_from_db(fields=["reserved_usd", "reserved_in"])
                        cost = Decimal(rng.randrange(0, int(bound.scaleb(10)) + 1)).scaleb(-10)
                        queue.finish([End(task, TaskState.DONE, score=1.0, cost=cost)], now)
                    ended += 1
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    budget = EvaluationBudget.objects.get()
    assert budget.spent_usd == spent(evaluation_id)
    assert budget.spent_usd <= budget.budget_usd
    assert budget.reserved_usd == 0
    counted = Counter(ends(evaluation_id))
    assert set(counted) == {("done", ""), ("skipped", "budget")}
    assert sum(counted.values()) == tasks
    assert Score.objects.count() == counted["done", ""]
    assert UUID(evaluation_id) == budget.evaluation_id
