"""Beat on three hosts, one of which is lost: whole processes of Celery's own command, on PostgreSQL and Redis."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from tests.fleet.servers import ROOT, Redis, redis_server
from tests.migrated import SHARED, TEMPLATE, start_cluster
from tests.services import Service, postgresql_url
from tests.stores import migrate, shared_secrets
from tests.waiting import wait_until

# How the tasks of config/settings/celery.py name their period: they expire when the next one is due, or shortly before.
_PERIODS = {"analytics.finish_deletions": (5.0, 4.0)}
# Beat sends a task only while it has something to do: here a deletion, for ever, because no worker runs.
_WORK = """
WITH project AS (
    INSERT INTO core_project (id, name, created_at) VALUES (gen_random_uuid(), 'beat', now()) RETURNING id
)
INSERT INTO analytics_deletion
    (id, project_id, kind, subject, subject_hash, requested_by, requested_at, state, requests, looks, look_at)
SELECT gen_random_uuid(), id, 'session', 's', '', 'tests', now(), 'pending', 0, 0, now() FROM project
"""
_TAKEN_OVER_SECONDS = 30.0


class Installation:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        postgresql, url = start_cluster(folder / "pg")
        stack.callback(postgresql.stop, signal.SIGINT)
        self._redis: Redis = stack.enter_context(redis_server(folder / "redis"))
        self._folder, self._stack = folder, stack
        # `make test` has migrated a database of the cluster before.
        is_migrated = SHARED in os.environ
        self._database = postgresql_url(folder / "pg", TEMPLATE) if is_migrated else url
        self._environment = {
            "DATABASE_URL": self._database,
            "REDIS_URL": self._redis.url,
            "CLICKHOUSE_URL": "clickhouse://127.0.0.1:1/llm",
            **shared_secrets(),
        }
        if not is_migrated:
            migrate(folder, self._environment, "migrate")
        with psycopg.connect(self._database) as connection:
            connection.execute(_WORK)

    def start(self, host: str) -> Service:
        folder = self._folder / host
        folder.mkdir()
        own = {"HOST_NAME": host, "VAR_DIR": str(folder), "HOME": str(folder), "PATH": os.environ["PATH"]}
        words = [f"{name}={value}" for name, value in {**self._environment, **own}.items()]
        beat = [sys.executable, "-m", "celery", "--workdir", str(ROOT), "-A", "config", "beat", "--pidfile="]
        service = Service("beat", ["env", "-i", *words, *beat], folder=folder)
        self._stack.callback(service.stop)
        return service

    def holder(self, *, other_than: str = "") -> str | None:
        with psycopg.connect(self._database) as connection:
            row = connection.execute("SELECT holder FROM core_lease WHERE name = 'beat'").fetchone()
        name = str(row[0]).partition(" ")[0] if row else ""
        return None if name in ("", other_than) else name

    def sent(self, task: str) -> list[float]:
        _, expires = _PERIODS[task]
        with self._redis.client() as client:
            headers = [json.loads(message)["headers"] for message in client.lrange("celery", 0, -1)]
        ends = [datetime.fromisoformat(one["expires"]).timestamp() for one in headers if one["task"] == task]
        return sorted(end - expires for end in ends)


@pytest.fixture
def installation(folder: Path) -> Iterator[Installation]:
    with ExitStack() as stack:
        yield Installation(folder, stack)


def test_beat__holder_is_killed__another_schedules_within_30_seconds_and_no_task_runs_twice(
    installation: Installation,
) -> None:
    hosts = {name: installation.start(name) for name in ("host-a", "host-b", "host-c")}
    first = wait_until(installation.holder, what="a host to schedule")
    frequent = "analytics.finish_deletions"
    wait_until(lambda: len(installation.sent(frequent)) >= 2, what="tasks to be sent")

    hosts[first].stop(signal.SIGKILL)
    before = len(installation.sent(frequent))
    second = wait_until(lambda: installation.holder(other_than=first), what="another to schedule")
    wait_until(lambda: len(installation.sent(frequent)) >= before + 3, what="its tasks to be sent")

    # One that ends in order gives its lease back.
    hosts[second].stop()
    wait_until(lambda: installation.holder(other_than=second), what="the third to schedule")
    wait_until(lambda: len(installation.sent(frequent)) >= before + 5, what="the third's tasks to be sent")

    for task, (period, _) in _PERIODS.items():
        gaps = [later - earlier for earlier, later in pairwise(installation.sent(task))]
        # Celery counts a period from when a task was due, so that one late run is followed by one in less.
        assert min(gaps) > period * 0.5, (task, gaps)
        assert max(gaps) < _TAKEN_OVER_SECONDS, (task, gaps)
