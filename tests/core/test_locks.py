from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.db import connection, connections

from core.processes.locks import installation_lock
from tests.at_once import at_once
from tests.services import START_SECONDS
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.django_db(transaction=True)
def test_installation_lock__several_callers__one_at_a_time() -> None:
    inside: list[int] = []
    most: list[int] = []

    def enter(number: int) -> None:
        with installation_lock("test"):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    at_once(6, enter)

    assert most == [1] * 6


@pytest.mark.django_db(transaction=True)
def test_installation_lock__held_by_another__says_once_who_has_it(caplog: pytest.LogCaptureFixture) -> None:
    entered = threading.Event()

    def second() -> None:
        with installation_lock("test"):
            entered.set()
        connection.close()

    waiting = threading.Thread(target=second)
    with (
        installation_lock("test"),
        installation_lock("another"),
        caplog.at_level("INFO", logger="core.locks"),
    ):
        waiting.start()
        wait_until(lambda: "lock.waiting" in caplog.text or None)
        assert not entered.is_set()
        # Whoever waits leaves the connections of a pooler by transaction to the holders.
        wait_until(lambda: _open_transactions() == 2, what="the waiting process to have no transaction open")
        assert str(os.getpid()) in caplog.text
    waiting.join(timeout=START_SECONDS)

    assert entered.is_set()
    assert caplog.text.count("lock.waiting") == 1


def _open_transactions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


@pytest.fixture
def empty_database(transactional_db: None) -> str:
    name = f"empty_{os.urandom(6).hex()}"
    with connections["default"].cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    host = connection.settings_dict["HOST"]
    return f"postgresql://postgres@/{name}?host={host}"


@pytest.mark.parametrize("server", [True, False], ids=["postgresql", "sqlite"])
@pytest.mark.parametrize(("apps", "made"), [(["core"], "Applying core.0001"), ([], "from their snapshot")])
def test_migrate__several_at_once_on_an_empty_database__all_succeed(
    empty_database: str, tmp_path: Path, server: bool, apps: list[str], made: str
) -> None:
    url = empty_database if server else f"sqlite:{tmp_path / 'empty.sqlite3'}"
    migrators = [_migrate(url, *apps) for _ in range(2)]

    outputs = [migrator.communicate(timeout=2 * START_SECONDS)[0] for migrator in migrators]

    assert [migrator.returncode for migrator in migrators] == [0, 0], outputs
    assert sum(made in text for text in outputs) == 1


def test_migrate__holder_killed__lock_is_free(empty_database: str) -> None:
    killed = _migrate(empty_database, "core")
    assert killed.stdout is not None
    for line in killed.stdout:
        if "Applying auth" in line:
            break
    killed.kill()
    killed.communicate()

    follower = _migrate(empty_database, "core")
    output, _ = follower.communicate(timeout=2 * START_SECONDS)

    assert follower.returncode == 0, output


def _migrate(url: str, *apps: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        # The migrations of one app and of those below it are enough: how many there are decides nothing about a lock.
        [sys.executable, "manage.py", "migrate", *apps],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
