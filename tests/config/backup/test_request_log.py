from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management.base import CommandError
from django.utils import timezone
from rest_framework.test import APIClient

from analytics.clickhouse import backup as backups
from analytics.clickhouse import client
from analytics.deletion.services import finish_due
from analytics.models import Deletion, DeletionState
from config.backup.progress import Steps
from core.encryption.canary import ensure_canary
from core.models import ApiKey, Project
from tests.analytics.deletion.deleting import SECRET, entry, erase, path_of
from tests.config.backup.commands import backup, restore
from tests.factories.analytics import store
from tests.factories.core import make_project

SESSIONS = ("kept", "erased", "closed")


@pytest.fixture
def project(transactional_db: None, clickhouse: None, spool: Path) -> Project:
    ensure_canary()
    project = make_project()
    entries = [
        entry(project, minutes, session_id=session, user_id=f"user of {session}", error_message=SECRET)
        for session in SESSIONS
        for minutes in (2, 24 * 60, 20 * 24 * 60)
    ]
    store(spool, *entries)
    return project


def figures(api: APIClient) -> dict[str, Any]:
    paths = ("metrics/overview", "metrics/cost/by-model", "sessions", "requests")
    answers = {path: api.get(f"/api/llm/{path}") for path in paths}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {path: answer.json() for path, answer in answers.items()}


def test_request_log__restored__gives_the_same_figures(api: APIClient, wipe: Callable[[], None], place: Path) -> None:
    before = figures(api)
    backup(place)
    wipe()

    printed = restore(place)

    assert figures(api) == before
    assert before["metrics/overview"]["total_requests"] == 9
    assert "figures: 0 corrected, 0 still differ" in printed


def test_session__erased_before_and_after_the_backup__stays_erased(
    api: APIClient, project: Project, wipe: Callable[[], None], place: Path
) -> None:
    erase(api, path_of("erased"))
    first = backup(place)
    erase(api, path_of("closed"))
    # The deletion is so old that only the hash of its id is left.
    Deletion.objects.filter(subject="closed").update(requested_at=timezone.now() - timedelta(minutes=1))
    Deletion.objects.filter(subject="closed").update(subject="", state=DeletionState.CLOSED, look_at=None)
    backup(place, "--without-log")
    before = figures(api)
    wipe()

    printed = restore(place, "--name", first)

    assert "3 requests made anonymous again" in printed
    assert api.get(path_of("closed")).status_code == api.get(path_of("erased")).status_code == 404
    assert api.get(path_of("kept")).status_code == 200
    assert figures(api)["metrics/overview"] == before["metrics/overview"]
    rows = client.execute("SELECT count() FROM requests WHERE user_id IN ('user of closed', 'user of erased')")
    assert rows == [(0,)]
    finish_due()
    assert client.execute("SELECT count() FROM payloads") == [(3,)]


def test_rows__deleted_often_before_the_backup__can_be_deleted_after_it(
    api: APIClient, project: Project, wipe: Callable[[], None], place: Path
) -> None:
    for minutes in range(100, 105):
        client.execute("DELETE FROM requests WHERE latency_ms = {ms:UInt32}", {"ms": minutes})
    backup(place)
    wipe()
    restore(place)

    client.execute("DELETE FROM requests WHERE session_id = 'kept'")

    assert client.execute("SELECT count() FROM requests WHERE session_id = 'kept'") == [(0,)]
    assert client.execute("SELECT count() FROM requests") == [(6,)]


def test_restore__a_store_with_rows__changes_nothing(
    api: APIClient, project: Project, wipe: Callable[[], None], place: Path
) -> None:
    backup(place)
    ApiKey.objects.all().delete()
    Project.objects.all().delete()
    rows = client.execute("SELECT count() FROM requests")

    with pytest.raises(CommandError, match="The analytics store is in use: the database llm has rows"):
        restore(place)

    assert client.execute("SELECT count() FROM requests") == rows
    assert not Project.objects.exists()


def test_restore__whose_archive_clickhouse_refuses__leaves_both_stores_empty(
    api: APIClient, project: Project, wipe: Callable[[], None], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = backup(place)
    wipe()
    archive = place / name / "request_log.tar"
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    monkeypatch.setattr("config.backup.manifest.check_file", lambda *_: None)

    with pytest.raises(CommandError, match="ClickHouse did not restore the request log: "):
        restore(place)

    assert not Project.objects.exists()
    assert client.execute("SELECT name FROM system.tables WHERE database = currentDatabase()") == []


def _at_the_first_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(progress: backups.Progress) -> None:
        assert progress.status in ("RESTORING", "RESTORED")
        raise KeyboardInterrupt

    monkeypatch.setattr(Steps, "bytes", lambda *_: nullcontext(show))


def _while_a_table_is_detached(monkeypatch: pytest.MonkeyPatch) -> None:
    execute = client.execute

    def interrupted(sql: str, *args: Any, **options: Any) -> Any:
        result = execute(sql, *args, **options)
        if sql.startswith("DETACH TABLE"):
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(client, "execute", interrupted)


def _after_both_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.backup.restoring.migrate_analytics", Mock(side_effect=KeyboardInterrupt))


@pytest.mark.parametrize("moment", [_at_the_first_progress, _while_a_table_is_detached, _after_both_are_loaded])
def test_restore__interrupted__leaves_nothing_and_another_one_works(
    moment: Callable[[pytest.MonkeyPatch], None], api: APIClient, wipe: Callable[[], None], place: Path
) -> None:
    before = figures(api)
    backup(place)
    wipe()

    with pytest.MonkeyPatch.context() as monkeypatch:
        moment(monkeypatch)
        with pytest.raises(CommandError, match=r"^Interrupted: both stores are without rows, as before\."):
            restore(place)

    assert not Project.objects.exists()
    assert client.execute("SELECT name FROM system.tables WHERE database = currentDatabase()") == []
    assert client.execute("SELECT count() FROM system.backups WHERE status = 'RESTORING'") == [(0,)]
    restore(place)
    assert figures(api) == before


def test_restore__interrupted_again_while_it_cleans_up__says_what_is_left(
    api: APIClient, wipe: Callable[[], None], place: Path
) -> None:
    backup(place)
    wipe()

    with pytest.MonkeyPatch.context() as monkeypatch:
        _while_a_table_is_detached(monkeypatch)
        monkeypatch.setattr(backups, "drop_tables", Mock(side_effect=[None, KeyboardInterrupt]))
        with pytest.raises(CommandError, match=r"^Interrupted twice: the database llm .* still has rows\. Drop its"):
            restore(place)

    backups.drop_tables()
    assert "restored: " in restore(place)
