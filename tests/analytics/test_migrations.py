"""The tables of a new store, and upgrades of a store with data, which keep every row and figure however they end."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analytics.clickhouse import client, lease, migrator
from analytics.clickhouse.address import resolve_url
from analytics.clickhouse.description import describe, read_definitions
from analytics.errors import AnalyticsQueryError, AnalyticsSchemaError
from analytics.shipper.loop import Shipper
from analytics.spool.writer import SpoolWriter
from tests.analytics import upgrades
from tests.analytics.reconciling import differences_of
from tests.analytics.request_counts import count_requests
from tests.factories.analytics import make_entry, store
from tests.migrated import place_database

_insert_columns = client.insert_columns
_MICROSECONDS_A_DAY = 86_400_000_000
# SHA-256 of the statements of `schema/`, without comments.
_SCHEMA = "754d75cdb254e569f87b04b2c847d2a3e9c4058f876e5270f672db3885aa83b7"
_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "schema.md"


@pytest.fixture
def later_migrations(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A store with the tables of the schema, and a version of the code that has more migrations."""
    migrator.migrate()
    monkeypatch.setattr(migrator, "MIGRATIONS", upgrades.copy_to(tmp_path / "migrations"))


def test_schema__statements__are_those_that_stores_have() -> None:
    """A store that has number 56 would not get a change of `schema/`: it needs a migration instead."""
    schema = migrator.load_migrations()[0]

    assert schema.name == "0056_schema"
    _, _, statements = schema.text.partition("\n")
    assert hashlib.sha256(statements.encode()).hexdigest() == _SCHEMA


def test_schema_page__is_that_of_the_store(clickhouse: None) -> None:
    assert describe() == _PAGE.read_text(encoding="utf-8"), "run `manage.py describe_analytics --write`"


def test_migrate__ledger_of_the_whole_chain__nothing_to_apply(empty_store: None) -> None:
    migrator.migrate()
    client.execute("TRUNCATE TABLE schema_migrations")
    rows = [(number, f"{number:04}_of_the_chain") for number in (1, 2, 55, 56)]
    client.insert("schema_migrations", ("number", "name"), rows, token="chain")

    assert migrator.missing_migrations() == [
        one.name for one in migrator.load_migrations() if one.number > migrator.SCHEMA_NUMBER
    ]


@pytest.mark.parametrize(
    ("number", "revisions"),
    [(21, "revision e78af81, then of revision d401361e first"), (46, "revision d401361e first")],
)
def test_migrate__store_in_the_middle_of_the_chain__is_refused_with_the_way_out(
    empty_store: None, number: int, revisions: str
) -> None:
    migrator.migrate()
    client.execute("TRUNCATE TABLE schema_migrations")
    client.insert("schema_migrations", ("number", "name"), [(1, "0001_ingest"), (number, "a")], token="chain")
    before = read_definitions()

    found = f"is at migration {number}, and this version begins at 56. Run `manage.py migrate_analytics` of {revisions}"
    with pytest.raises(CommandError, match=found):
        call_command("migrate_analytics")
    with pytest.raises(AnalyticsSchemaError):
        migrator.missing_migrations()

    assert read_definitions() == before


@pytest.mark.usefixtures("later_migrations")
def test_migrate__store_with_data__keeps_every_row_and_figure(spool: Path) -> None:
    project = uuid.uuid4()
    _fill(spool, project, 300)
    before = _everything(project)

    applied = migrator.migrate()

    assert "9036_errors_hourly" in applied
    assert before["requests"]
    assert before["payloads"]
    assert _everything(project) == before
    _fill(spool, project, 20)
    assert count_requests(project).requests == 320
    assert count_requests(project).consistent
    assert differences_of(project) == []


@pytest.mark.usefixtures("later_migrations")
def test_migrate__ledger_lost__keeps_every_row_and_figure(spool: Path) -> None:
    migrator.migrate()
    project = uuid.uuid4()
    _fill(spool, project, 200)
    before, layout = _everything(project), _layout()
    client.execute("DROP TABLE schema_migrations SYNC")

    migrator.migrate()

    assert _layout() == layout
    assert _everything(project) == before
    _fill(spool, project, 10)
    assert count_requests(project).requests == 210
    assert differences_of(project) == []


@pytest.mark.usefixtures("later_migrations")
@pytest.mark.parametrize(
    "name", ["9036_errors_hourly", "9037_granules_of_figures", "9038_errors_by_operation", "9039_log_column"]
)
def test_migrate__broken_off_after_any_statement__goes_on_to_the_same_end(
    spool: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Brings a store with data to a migration, breaks that off after each of its statements, and goes on."""
    migrations = migrator.load_migrations()
    [migration] = [one for one in migrations if one.name == name]
    earlier = [one for one in migrations if one.number < migration.number]
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "load_migrations", lambda: earlier)
        migrator.migrate()
    project = uuid.uuid4()
    _fill(spool, project, 40)
    before = _everything(project)

    for allowed in range(len(list(migration.statements()))):
        with monkeypatch.context() as patched:
            patched.setattr(client, "execute", failing_after(allowed))
            patched.setattr(migrator, "load_migrations", lambda: [migration])
            with pytest.raises(AnalyticsQueryError, match="broken off"):
                migrator.migrate()

    migrator.migrate()

    assert _everything(project) == before
    _fill(spool, project, 5)
    assert count_requests(project).requests == 45
    assert differences_of(project) == []


def test_migrate__two_more_columns_declared__are_written_kept_and_read(empty_store: None, tmp_path: Path) -> None:
    """The declaration is all that a column needs: the store with rows, the shipper, queries and deletions follow it."""
    migrator.migrate()
    project = uuid.uuid4()
    _fill(tmp_path / "before", project, 3)
    before = [["", "", user] for (user,) in client.execute("SELECT user_id FROM requests ORDER BY user_id")]

    command = [sys.executable, "-m", "tests.analytics.declared_columns", str(project), str(tmp_path / "after")]
    place_database(tmp_path / "var")
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path / "var"), "CLICKHOUSE_URL": resolve_url()}
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "behind": [True, False],
        "applied": ["9060_region", "9061_note"],
        "request": ["eu-west-1", "Ann"],
        "stored": [*before, ["eu-west-1", "", ""], ["eu-west-1", "Ann", "ann"]],
    }


def test_migrate__server_without_text_indexes__makes_none(empty_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrator, "_has_text_indexes", lambda: False)

    migrator.migrate()

    indexes = client.execute("SELECT name FROM system.data_skipping_indices WHERE table = 'payloads'")
    assert sorted(indexes) == [("i_request",), ("i_shared",)]


def test_recorded_at__row_without_it__is_when_the_request_ended(clickhouse: None, spool: Path) -> None:
    """Rows without the column come from the release before; all others have the time of their insert."""
    project = uuid.uuid4()
    ts = int((datetime.now(UTC) - timedelta(days=1)).timestamp() * 1e6)
    store(spool, make_entry(project_id=str(project), ts=ts, latency_ms=2500))
    client.execute(
        "INSERT INTO requests (project_id, ts, request_id, latency_ms, drop_date)"
        " SELECT project_id, ts + 1, request_id, latency_ms, drop_date FROM requests"
    )

    ended = "toDateTime64(addMilliseconds(ts, 2500), 3, 'UTC')"
    sql = f"SELECT recorded_at - ts > 3600, recorded_at = {ended} FROM requests ORDER BY ts"  # noqa: S608 - of this test
    assert client.execute(sql) == [(1, 0), (0, 1)]


def test_recorded_at__batch_sent_again__one_row_with_the_time_of_the_first(
    clickhouse: None, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks differ by their time: the token alone shows that they are the same."""
    project, sent = uuid.uuid4(), []

    def twice(table: str, columns: Mapping[str, Sequence[Any]], *, token: str) -> None:
        for _ in range(2):
            _insert_columns(table, columns, token=token)
            if table == "ingest":
                sent.append(_recorded_at(project))

    monkeypatch.setattr(client, "insert_columns", twice)
    store(spool, make_entry(project_id=str(project)))
    first, again = sent
    assert len(first) == 1
    assert again == first
    assert count_requests(project).consistent


def test_shipper__batch_with_rows_of_many_days__is_taken(clickhouse: None, spool: Path) -> None:
    """The partitions may be more than a block may usually have."""
    project = uuid.uuid4()
    now = datetime.now(UTC)
    store(
        spool,
        *(
            make_entry(
                project_id=str(project),
                ts=int((now - timedelta(days=days)).timestamp() * 1e6),
                retention_days=10 + days * 40,
            )
            for days in range(150)
        ),
    )

    assert count_requests(project).requests == 150


def test_expired_rows__after_a_merge__are_gone_from_every_table(clickhouse: None, spool: Path) -> None:
    """Of two projects of one day, the one with the short retention expires and the other stays, without a mutation."""
    kept, expired = uuid.uuid4(), uuid.uuid4()
    ts = int((datetime.now(UTC) - timedelta(days=10)).timestamp() * 1e6)
    entries = [
        make_entry(
            b'{"a": 1}', b'{"b": 2}', project_id=str(project), ts=ts + number, retention_days=days, session_id="s"
        )
        for project, days in ((kept, 30), (expired, 9))
        for number in range(5)
    ]
    store(spool, *entries)

    tables = [name for (name,) in client.execute(_TABLES_WITH_EXPIRY)]
    mutations = client.execute(_MUTATIONS)
    for table in tables:
        client.execute(f"OPTIMIZE TABLE {table} FINAL")

    assert {"requests", "payloads", "requests_minute", "users_daily"} <= set(tables)
    for table in tables:
        found = {project for (project,) in client.execute(f"SELECT DISTINCT toString(project_id) FROM {table}")}  # noqa: S608
        assert str(expired) not in found, table
    assert count_requests(kept).requests == 5
    assert count_requests(kept).consistent
    assert client.execute(_MUTATIONS) == mutations


def test_tables__that_expire__do_so_by_day_or_row_by_row(clickhouse: None) -> None:
    """With `ttl_only_drop_parts` and partitions of months, a row would be kept for up to a month too long."""
    rows = client.execute(
        "SELECT name, partition_key, engine_full FROM system.tables"
        " WHERE database = currentDatabase() AND engine_full LIKE '% TTL %'"
    )

    for name, partition_key, engine in rows:
        assert partition_key in {"drop_date", "DropDate"} or "ttl_only_drop_parts = 1" not in engine, name


_TABLES_WITH_EXPIRY = """
SELECT name FROM system.tables
WHERE database = currentDatabase() AND engine_full LIKE '% TTL drop_date%'
    AND name IN (SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'project_id')
"""

_MUTATIONS = "SELECT count() FROM system.mutations WHERE database = currentDatabase()"


def _recorded_at(project: uuid.UUID) -> list[tuple[Any, ...]]:
    return client.execute("SELECT recorded_at FROM requests WHERE project_id = {project:UUID}", {"project": project})


def failing_after(allowed: int) -> Callable[..., list[tuple[Any, ...]]]:
    """Returns a `client.execute` that fails from the statement after `allowed` statements of a migration on."""
    execute, left = client.execute, allowed

    def run(sql: str, *arguments: Any, **options: Any) -> list[tuple[Any, ...]]:
        nonlocal left
        if sql.startswith(lease.MARK):
            left -= 1
            if left < 0:
                raise AnalyticsQueryError("broken off", server_code=0, reason="by the test")
        return execute(sql, *arguments, **options)

    return run


def _fill(spool: Path, project: uuid.UUID, number: int) -> None:
    """Requests of several days, sessions, users and retentions, half of them with content."""
    chance = random.Random(number)
    now = datetime.now(UTC)
    writer = SpoolWriter(spool)
    for _ in range(number):
        ts = int(now.timestamp() * 1e6) - chance.randrange(60 * _MICROSECONDS_A_DAY)
        body = b'{"messages": [{"role": "user", "content": "Hello"}]}' if chance.random() < 0.5 else b""
        writer.append(
            make_entry(
                body,
                b"{}" if body else b"",
                project_id=str(project),
                ts=ts,
                session_id=chance.choice(["", "one", "two"]),
                user_id=chance.choice(["", "u1", "u2"]),
                retention_days=chance.choice([100, 400]),
                cost_usd=f"0.{chance.randrange(10**10):010d}",
            )
        )
    writer.close()
    shipper = Shipper(spool)
    shipper.drain()
    shipper.close()


def _everything(project: uuid.UUID) -> dict[str, Any]:
    """Returns all rows of all tables, in order, and the figures of the overview."""
    found: dict[str, Any] = {
        table: client.execute(
            f"SELECT {columns} FROM {table} WHERE project_id = {{project:UUID}} ORDER BY ts, request_id",  # noqa: S608
            {"project": project},
        )
        for table, columns in (
            ("requests", "ts, request_id, session_id, user_id, model, cost_usd, latency_ms, prompt_preview, drop_date"),
            ("payloads", "ts, request_id, prompt, completion, request, response, drop_date"),
        )
    }
    found["days"] = {
        day for (day,) in client.execute("SELECT DISTINCT drop_date FROM requests") if isinstance(day, date)
    }
    return found


def _layout() -> dict[str, str]:
    return dict(
        client.execute(
            "SELECT name, engine_full FROM system.tables"
            " WHERE database = currentDatabase() AND name NOT LIKE 'migration_lease_%' ORDER BY name"
        )
    )
