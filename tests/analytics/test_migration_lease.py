"""Several migrators of one store with data, of which some are killed or stopped, keep figures equal to the rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from pytest_django import Settings

from analytics.clickhouse import client, lease, migrator
from analytics.clickhouse.address import resolve_url
from tests.analytics import upgrades
from tests.analytics.reconciling import differences_of as differences
from tests.services import START_SECONDS
from tests.waiting import wait_until

_ROOT = Path(__file__).resolve().parent.parent.parent
_ROWS = 20_000

# The data has several days, sessions, users, outcomes and retentions; columns that are not named are empty.
_FILL = f"""
INSERT INTO ingest (
    project_id, ts, request_id, outcome, status_code, session_id, user_id, provider, model, error_type, error_code,
    latency_ms, ttft_ms, cost_known, cost_usd, retention_days, request
)
SELECT
    {{project:UUID}}, now64(6) - toIntervalSecond(number * 97), generateUUIDv4(),
    if(number % 10 = 0, 'error', 'success'), if(number % 10 = 0, 500, 200), toString(number % 700),
    toString(number % 90), 'openai', toString(number % 3),
    if(number % 10 = 0, 'api_error', ''), if(number % 10 = 0, 'provider_error', ''), number % 900,
    if(number % 2 = 0, 100, 0), true, 0.001, if(number % 2 = 0, 100, 400), '{{}}'
FROM numbers({_ROWS})
"""  # noqa: S608 - a number of this file


@pytest.fixture
def project(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> uuid.UUID:
    """The project of a store with data that lacks all later migrations."""
    migrator.migrate()
    monkeypatch.setattr(migrator, "MIGRATIONS", upgrades.copy_to(tmp_path / "migrations", more=10))
    project = uuid.uuid4()
    client.execute(_FILL, {"project": project})
    return project


def test_migrate_analytics__several_at_once_on_a_store_with_data__all_succeed_and_figures_are_right(
    project: uuid.UUID,
) -> None:
    processes = [_migrator() for _ in range(3)]
    ended = [process.communicate(timeout=2 * START_SECONDS)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0], ended
    _assert_migrated_once(project)
    applied = [line for text in ended for line in text.splitlines() if line.startswith("applied ")]
    assert len(applied) == len(set(applied))


def test_migrate_analytics__killed_again_and_again__ends_with_the_same_figures(project: uuid.UUID) -> None:
    """Each migrator is killed after one more migration is applied, in a statement or between two."""
    for _ in range(4):
        before = _count_applied()
        process = _migrator({"MIGRATION_LEASE_SECONDS": "2"})
        _wait_until_applied(before + 1)
        process.kill()
        process.communicate()

    process = _migrator({"MIGRATION_LEASE_SECONDS": "2"})
    output, _ = process.communicate(timeout=2 * START_SECONDS)

    assert process.returncode == 0, output
    assert "lease.taken_over" in output
    _assert_migrated_once(project)


def test_migrate_analytics__stopped_for_longer_than_its_lease__leaves_the_work_to_another(project: uuid.UUID) -> None:
    stopped = _migrator({"MIGRATION_LEASE_SECONDS": "2"})
    _wait_until_applied(_count_applied() + 1)
    stopped.send_signal(signal.SIGSTOP)
    try:
        other = _migrator({"MIGRATION_LEASE_SECONDS": "2"})
        output, _ = other.communicate(timeout=2 * START_SECONDS)
    finally:
        stopped.send_signal(signal.SIGCONT)
    last_words, _ = stopped.communicate(timeout=START_SECONDS)

    assert other.returncode == 0, output
    assert stopped.returncode == 0, last_words
    _assert_migrated_once(project)


def test_migrate__lease_of_a_dead_process__is_taken_over(empty_store: None, settings: Settings) -> None:
    settings.MIGRATION_LEASE_SECONDS = 0.3
    client.execute("CREATE TABLE migration_lease_9 (none UInt8) ENGINE = Null COMMENT 'elsewhere process 7 beat 4'")

    assert migrator.migrate() == [one.name for one in migrator.load_migrations()]

    assert _leases().keys() == {"migration_lease_10"}
    assert _leases()["migration_lease_10"].startswith("ended ")


def test_migrate__lease_of_a_living_process__is_waited_for(
    empty_store: None, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.MIGRATION_LEASE_SECONDS = START_SECONDS
    applied: list[str] = []
    other = threading.Thread(target=lambda: applied.extend(migrator.migrate()))

    with lease.migration_lease(), caplog.at_level("INFO", logger="analytics.migrations"):
        other.start()
        wait_until(lambda: "lease.waiting" in caplog.text or None)
        assert f"process {os.getpid()}'" in caplog.text
        assert migrator.missing_migrations() == [one.name for one in migrator.load_migrations()]
    other.join(timeout=START_SECONDS)

    assert len(applied) == len(migrator.load_migrations())
    assert caplog.text.count("lease.waiting") == 1


def test_migrate__nothing_to_apply__takes_no_lease(empty_store: None) -> None:
    migrator.migrate()
    before = _leases()

    assert migrator.migrate() == []

    assert _leases() == before


def test_migrate__insert_under_way_as_its_table_goes__is_waited_for(project: uuid.UUID) -> None:
    """The insert is slow because of its own rows: it began before the migration, and ends in the middle of it."""
    late = uuid.uuid4()
    slow = _FILL.replace(f"numbers({_ROWS})", "(SELECT number + sleepEachRow(0.002) AS number FROM numbers(1500))")
    insert = threading.Thread(
        target=lambda: client.execute(slow, {"project": late}, {"max_block_size": 100, "max_threads": 1})
    )
    insert.start()
    wait_until(lambda: _count_inserts() or None)

    migrator.migrate()
    insert.join(timeout=START_SECONDS)

    assert client.execute("SELECT count() FROM requests WHERE project_id = {p:UUID}", {"p": late}) == [(1500,)]
    assert differences(late) == []
    assert differences(project) == []


def _migrator(environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.analytics.upgrades", str(migrator.MIGRATIONS)],
        cwd=_ROOT,
        env={**os.environ, "CLICKHOUSE_URL": resolve_url(), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _count_applied() -> int:
    return int(client.execute("SELECT count() FROM schema_migrations")[0][0])


def _wait_until_applied(number: int) -> None:
    wait_until(lambda: _count_applied() >= number, seconds=START_SECONDS, what=f"{number} migrations to be applied")


def _count_inserts() -> int:
    sql = "SELECT count() FROM system.processes WHERE position(query, {text:String}) > 0 AND query_id != queryID()"
    return int(client.execute(sql, {"text": "sleepEachRow"})[0][0])


def _leases() -> dict[str, str]:
    sql = "SELECT name, comment FROM system.tables WHERE database = currentDatabase() AND name LIKE 'migration_lease%'"
    return dict(client.execute(sql))


def _assert_migrated_once(project: uuid.UUID) -> None:
    everything = migrator.load_migrations()
    assert _count_applied() == len(everything)
    assert client.execute("SELECT count() FROM requests") == [(_ROWS,)]
    assert client.execute("SELECT sum(requests) FROM errors_hourly") == [(_ROWS // 10,)]
    assert client.execute("SELECT sum(streamed) FROM requests_hourly") == [(_ROWS // 2,)]
    assert differences(project) == []
