"""Outages without waits: workers that are processes and are killed, time that passes in the tables, and a judge whose
costs and failures are by chance."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.utils import timezone

from analytics.models import EvaluationBudget, EvaluationTask, Score
from analytics.models.online_evaluations import TaskState
from analytics.online_evaluations import queue
from analytics.request_log.record import SpoolEntry
from tests.factories.analytics import make_entry, store
from tests.fakes.scripted import Step, completion, status
from tests.fakes.upstream import Connection, Received
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.evaluations.online import graded, spent

# Beat would call the task again; here the process ends when nothing is due that does not wait.
_WORK = "from gateway.evaluations.online import judge_due\nwhile judge_due(): pass"
_TIMES = ("due_at", "not_before", "claimed_until")
_AT_ONCE = 1_000


def answers(scene: Scene, count: int, **fields: Any) -> list[str]:
    """Stores so many answered requests; returns their ids."""
    entries = entries_of(scene, count, **fields)
    store_all(scene, entries)
    return [str(entry.record.request_id) for entry in entries]


def entries_of(scene: Scene, count: int, **fields: Any) -> list[SpoolEntry]:
    body = json.dumps({"model": "openai/gpt-4o", "messages": [{"role": "user", "content": "When?"}]}).encode()
    answered = json.dumps(completion("At seven.")).encode()
    project = {"project_id": str(scene.project.pk)}
    return [make_entry(body, answered, **project, **fields) for _ in range(count)]


def store_all(scene: Scene, entries: Sequence[SpoolEntry]) -> None:
    for start in range(0, len(entries), _AT_ONCE):
        store(scene.spool, *entries[start : start + _AT_ONCE])


def start_worker(folder: Path, name: str = "worker", **environment: str) -> subprocess.Popen[bytes]:
    """Starts a process that judges until nothing is due. It has the test's stores, but for those of `environment`."""
    given: dict[str, Any] = connection.settings_dict
    own = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{given['USER']}@/{given['NAME']}?host={given['HOST']}&port={given['PORT']}",
        "SPOOL_DIR": str(folder / f"spool-of-{name}"),
        **environment,
    }
    return subprocess.Popen([sys.executable, str(settings.BASE_DIR / "manage.py"), "shell", "-c", _WORK], env=own)


def work(folder: Path, **environment: str) -> None:
    """Has a worker judge until nothing is due that does not wait."""
    worker = start_worker(folder, **environment)
    try:
        assert worker.wait() == 0
    finally:
        worker.kill()
        worker.wait()


def pass_time(minutes: float) -> None:
    """Moves the times of all that is due back, as if so much time had passed."""
    moved = {name: F(name) - timedelta(minutes=minutes) for name in _TIMES}
    EvaluationTask.objects.filter(state=TaskState.DUE).update(**moved)


def work_until_nothing_is_due(folder: Path, **environment: str) -> None:
    """Has workers judge, while the minutes pass after which beat would have called again."""
    while EvaluationTask.objects.filter(state=TaskState.DUE).exists():
        work(folder, **environment)
        pass_time(1)


def check_ends(evaluation_id: str, request_ids: list[str]) -> None:
    """Checks that all that was due is done or missing with a reason, nothing twice, and that the money is right."""
    tasks = EvaluationTask.objects.filter(evaluation=UUID(evaluation_id))
    assert sorted(map(str, tasks.values_list("request_id", flat=True))) == sorted(request_ids)
    assert not tasks.filter(state=TaskState.DUE).exists()
    assert not tasks.exclude(state=TaskState.DONE).filter(reason="").exists()
    done = sorted(map(str, tasks.filter(state=TaskState.DONE).values_list("request_id", flat=True)))
    assert sorted(Score.objects.values_list("request_id", flat=True)) == done
    for budget in EvaluationBudget.objects.filter(evaluation=UUID(evaluation_id)):
        assert budget.spent_usd == spent(evaluation_id)
        assert budget.spent_usd <= budget.budget_usd
        assert budget.reserved_usd == 0
    assert not tasks.exclude(reserved_usd=Decimal(0)).exists()
    assert not tasks.exclude(claim=None).exists()


def by_chance(seed: int) -> Step:
    """Returns a judge whose tokens are by chance, and of whose answers some fail and some cannot be read."""
    rng = random.Random(seed)

    async def step(request: Received, connection: Connection) -> None:
        prompt, chosen = rng.randrange(1, 1_000), rng.random()
        usage = {"prompt_tokens": prompt, "completion_tokens": 7, "total_tokens": prompt + 7}
        if chosen < 0.06:
            await status(500)(request, connection)
        elif chosen < 0.1:
            await graded("perhaps", usage=usage)(request, connection)
        else:
            await graded(rng.choice(("yes", "no")), usage=usage)(request, connection)

    return step


def twenty_minutes_later() -> None:
    """Has the queue look at what is left as it would then."""
    queue.tidy(timezone.now() + timedelta(minutes=20))
