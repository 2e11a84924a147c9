"""Upgrades of a store with data: every row and figure stays, whatever was broken off or forgotten on the way."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client, migrator
from analytics.errors import AnalyticsQueryError
from analytics.queries.counts import count_requests
from analytics.reconciliation.services import reconcile
from analytics.shipper.loop import Shipper
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry, store

_FIRST_RELEASE = 8
_insert = client.insert
_MICROSECONDS_A_DAY = 86_400_000_000


@pytest.fixture
def first_release(empty_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = migrator.load_migrations
    with monkeypatch.context() as patched:
        patched.setattr(
            migrator, "load_migrations", lambda: [one for one in everything() if one.number <= _FIRST_RELEASE]
        )
        migrator.migrate()
    monkeypatch.setattr(client, "insert", insert_what_fits)


def test_migrate__store_of_the_first_release__keeps_every_row_and_figure(first_release: None, spool: Path) -> None:
    project = uuid.uuid4()
    _fill(spool, project, 300)
    before = _everything(project)

    applied = migrator.migrate()

    assert "0018_payloads_by_week" in applied
    assert before["requests"]
    assert before["payloads"]
    assert _everything(project) == before
    assert _differences(project) == []
    _fill(spool, project, 20)
    assert count_requests(project).requests == 320
    assert count_requests(project).consistent
    assert _differences(project) == []


def test_migrate__ledger_lost__keeps_every_row_and_figure(empty_store: None, spool: Path) -> None:
    migrator.migrate()
    project = uuid.uuid4()
    _fill(spool, project, 200)
    before = _everything(project)
    client.execute("DROP TABLE schema_migrations SYNC")

    migrator.migrate()

    assert _everything(project) == before
    assert _differences(project) == []
    _fill(spool, project, 10)
    assert count_requests(project).requests == 210
    assert _differences(project) == []


def test_migrate__new_store__same_tables_as_an_upgraded_one(empty_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    migrator.migrate()
    layout = _layout()

    assert layout["payloads"] == "toMonday(drop_date)"
    assert _has_small_granules("requests_hourly")
    assert _has_small_granules("requests_daily")
    client.execute("DROP TABLE schema_migrations SYNC")
    migrator.migrate()
    assert _layout() == layout


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("_payloads_by_week", "payloads_by_week"),
        ("_small_granules_of_requests", "requests_small"),
        ("_small_granules_of_texts", "payloads_small"),
        ("_small_granules_of_figures", "ly_small"),
    ],
)
def test_migrate__broken_off_after_any_statement__goes_on_to_the_same_end(
    first_release: None, spool: Path, monkeypatch: pytest.MonkeyPatch, name: str, copy: str
) -> None:
    project = uuid.uuid4()
    _fill(spool, project, 40)
    before = _everything(project)
    earlier, [migration] = _until(name)
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "load_migrations", lambda: earlier)
        migrator.migrate()
    statements = len(list(migration.statements(text_indexes="")))
    execute = client.execute

    for allowed in range(statements):
        left = allowed

        def fail_after(sql: str, *arguments: Any, **options: Any) -> list[tuple[Any, ...]]:
            nonlocal left
            if copy in sql or "_closed" in sql:
                left -= 1
                if left < 0:
                    raise AnalyticsQueryError("broken off", server_code=0, reason="by the test")
            return execute(sql, *arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(client, "execute", fail_after)
            patched.setattr(migrator, "load_migrations", lambda: [migration])
            with pytest.raises(AnalyticsQueryError):
                migrator.migrate()

    migrator.migrate()

    assert _everything(project) == before
    assert _differences(project) == []
    assert _layout()["payloads"] == "toMonday(drop_date)"
    _fill(spool, project, 5)
    assert count_requests(project).requests == 45
    assert _differences(project) == []


def test_recorded_at__rows_of_before__when_they_ended_and_later_ones_when_they_came(
    empty_store: None, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, (earlier, _) = uuid.uuid4(), _until("_recorded_at")
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "load_migrations", lambda: earlier)
        migrator.migrate()
    ts = int((datetime.now(UTC) - timedelta(days=1)).timestamp() * 1e6)
    entries = [make_entry(project_id=str(project), ts=ts + number, latency_ms=2500) for number in range(2)]
    store(spool, entries[0])
    migrator.migrate()
    store(spool, entries[1])

    ended = "toDateTime64(addMilliseconds(ts, 2500), 3, 'UTC')"
    sql = f"SELECT recorded_at - ts > 3600, recorded_at = {ended} FROM requests ORDER BY ts"  # noqa: S608 - of this test
    assert client.execute(sql) == [(0, 1), (1, 0)]


def test_recorded_at__batch_sent_again__one_row_with_the_time_of_the_first(
    clickhouse: None, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks differ by the time in them: the token alone says that they are the same."""
    project, sent = uuid.uuid4(), []

    def twice(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, token: str) -> None:
        for _ in range(2):
            _insert(table, columns, rows, token=token)
            sent.append(_recorded_at(project))

    monkeypatch.setattr(client, "insert", twice)
    store(spool, make_entry(project_id=str(project)))
    first, again = sent
    assert len(first) == 1
    assert again == first
    assert count_requests(project).consistent


def test_shipper__batch_with_rows_of_many_days__is_taken(clickhouse: None, spool: Path) -> None:
    """Their partitions may be more than a block usually may have."""
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
    """Two projects of one day: the one with the short retention leaves, the other stays, and no mutation ran."""
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
    """`ttl_only_drop_parts` with months as partitions would keep a row for up to a month too long."""
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


def insert_what_fits(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, token: str) -> None:
    """As the shipper of a release that has no more columns than its store."""
    sql = "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table:String}"
    there = {name for (name,) in client.execute(sql, {"table": table})}
    places = [place for place, name in enumerate(columns) if name in there]
    fitting = [[row[place] for place in places] for row in rows]
    _insert(table, [columns[place] for place in places], fitting, token=token)


def _recorded_at(project: uuid.UUID) -> list[tuple[Any, ...]]:
    return client.execute("SELECT recorded_at FROM requests WHERE project_id = {project:UUID}", {"project": project})


def _until(name: str) -> tuple[list[migrator.Migration], list[migrator.Migration]]:
    """The migrations before the one whose name ends so, and that one."""
    everything = migrator.load_migrations()
    [migration] = [one for one in everything if one.name.endswith(name)]
    return [one for one in everything if one.number < migration.number], [migration]


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
    """All rows of the tables with rows, in order, and the figures of the overview."""
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


def _differences(project: uuid.UUID) -> list[Any]:
    """Of every rollup from its requests, as if all days were over."""
    the_day_after_tomorrow = datetime.now(UTC) + timedelta(days=2)
    return list(reconcile([project], now=the_day_after_tomorrow, dry_run=True).differences)


def _has_small_granules(table: str) -> bool:
    sql = "SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = {table:String}"
    [(engine,)] = client.execute(sql, {"table": table})
    return "index_granularity = 256" in engine


def _layout() -> dict[str, str]:
    return dict(
        client.execute(
            "SELECT name, partition_key FROM system.tables"
            " WHERE database = currentDatabase() AND name NOT LIKE 'migration_lease_%' ORDER BY name"
        )
    )
