"""A ClickHouse server that writes its backup to object storage itself.

The embedded engine lets nobody reach a bucket, so chDB itself runs the statements, in its own process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from pytest_django import Settings

from analytics.clickhouse import backup as store
from core.models import Project
from core.storage import Bucket, place_of
from tests.config.backup.commands import backup, restore
from tests.fakes.object_storage import BUCKET, object_storage
from tests.migrated import ROOT

CHDB = """
import json, sys, time
from chdb.state.sqlitelike import connect
engine, target, source = sys.argv[1:]
connection = connect(engine)
def ask(sql):
    return json.loads(connection.query(sql, "JSONCompact").bytes() or '{"data": []}')["data"]
def run(sql):
    [[identifier, _]] = ask(sql)
    while True:
        [[status, error]] = ask(f"SELECT status, error FROM system.backups WHERE id = '{identifier}'")
        if not status.endswith("ING_BACKUP") and status != "RESTORING":
            return [status, error]
        time.sleep(0.01)
ask("CREATE DATABASE llm ENGINE = Atomic")
ask("CREATE TABLE llm.requests (n UInt64) ENGINE = MergeTree ORDER BY n")
ask("INSERT INTO llm.requests SELECT number FROM numbers(1000)")
print(run(f"BACKUP DATABASE llm TO {target} ASYNC"))
print(run(f"RESTORE DATABASE llm AS other FROM {source} ASYNC"))
print(ask("SELECT count() FROM other.requests"))
"""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with object_storage() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield f"s3://{BUCKET}/gateway"


def folder_in(address: str, name: str) -> Bucket:
    folder = place_of(address).within(name)
    assert isinstance(folder, Bucket)
    return folder


def test_statement__of_a_bucket__is_one_that_clickhouse_runs(bucket: str, tmp_path: Path) -> None:
    place = store.in_bucket(*folder_in(bucket, "made").clickhouse_arguments("request_log"))
    words = [sys.executable, "-c", CHDB, str(tmp_path / "engine"), place, place]

    done = subprocess.run(words, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)

    assert done.stdout.splitlines() == ["['BACKUP_CREATED', '']", "['RESTORED', '']", "[[1000]]"], done.stderr
    assert ".backup" in folder_in(bucket, "made").sizes("request_log")


def test_statement__with_keys_of_a_session__leaves_the_server_its_own_role(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-a-session")

    (url,) = folder_in(bucket, "made").clickhouse_arguments("request_log")

    assert url.endswith(f"/{BUCKET}/gateway/made/request_log")


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch, bucket: str) -> list[str]:
    """A server without a disk that this host sees; returns the places that it was sent to."""
    settings.CLICKHOUSE_BACKUP_DIR = None
    asked: list[str] = []

    def back_up(place: str, *, collected: Callable[[], None], show: Callable[[store.Progress], None]) -> None:
        asked.append(place)
        collected()
        place_of(bucket).write(place.split("/gateway/")[1].split("'")[0] + "/.backup", b"<config/>")

    monkeypatch.setattr(store, "back_up", back_up)
    monkeypatch.setattr(store, "restore", lambda place, former, *, show: asked.append(f"{former} from {place}"))
    return asked


def test_backup__of_a_server_into_a_bucket__is_written_and_read_by_the_server(
    full: Project, bucket: str, server: list[str], wipe: Callable[[], None]
) -> None:
    name = backup(bucket)
    wipe()
    restore(bucket)

    url = f"{os.environ['AWS_ENDPOINT_URL_S3']}/{BUCKET}/gateway/{name}/request_log"
    place = f"S3('{url}', 'AKIAIOSFODNN7EXAMPLE', 'of-the-tests')"
    assert server == [place, f"llm from {place}"]


def test_restore__whose_objects_are_torn__is_refused(
    full: Project, bucket: str, server: list[str], wipe: Callable[[], None]
) -> None:
    name = backup(bucket)
    wipe()
    place_of(bucket).within(name).delete("request_log/.backup")

    with pytest.raises(CommandError, match="objects of the request log are missing or have other sizes"):
        restore(bucket)

    assert not Project.objects.exists()


def test_backup__of_a_server_into_a_folder__is_refused(
    full: Project, server: list[str], clickhouse: None, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match="The ClickHouse server cannot write to this folder"):
        backup(tmp_path / "backups")
    assert server == []


def test_request_log__of_an_engine_in_a_bucket__is_restored_by_a_server(
    full: Project, bucket: str, wipe: Callable[[], None], request: pytest.FixtureRequest
) -> None:
    name = backup(bucket)
    wipe()
    asked: list[str] = request.getfixturevalue("server")

    restore(bucket)

    (source,) = asked
    assert source.startswith("llm from S3('")
    assert f"/gateway/{name}/request_log.tar', " in source
