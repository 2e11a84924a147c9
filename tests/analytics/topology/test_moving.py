"""`manage.py move_analytics` moves the request log of one server into the tables of a cluster, while hosts go on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from analytics.clickhouse import client, migrator
from analytics.clickhouse.address import database
from analytics.clickhouse.lease import MARK
from analytics.clickhouse.topology.mode import on_trial
from analytics.deletion.services import delete_session, finish_due
from analytics.errors import AnalyticsUnavailableError
from analytics.models import Deletion, DeletionState
from analytics.moving import move
from analytics.shipper.loop import Shipper, insert_into_store
from analytics.spool.writer import SpoolWriter
from tests.analytics.engine_process import running_engine
from tests.analytics.reconciling import differences_of, entries_of
from tests.analytics.request_counts import count_requests
from tests.analytics.topology.engine import CLUSTER
from tests.factories.analytics import make_entry
from tests.factories.core import make_project
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

_ROWS = 60
_NEW = "llm_cluster"
_SPANS = "SELECT count() FROM otel_traces FINAL WHERE ProjectId = {project:UUID}"
_IN_SESSION = "SELECT count() FROM requests WHERE project_id = {project:UUID} AND session_id = 's1'"
_TABLES = "SELECT name, engine FROM system.tables WHERE database = {database:String} ORDER BY name"


@dataclass(frozen=True)
class _Hosts:
    """The settings of hosts before and after the move, which are tried in this process."""

    url: str

    @contextmanager
    def old(self) -> Iterator[None]:
        with override_settings(CLICKHOUSE_URL=self.url, CLICKHOUSE_MODE="single"):
            yield

    @contextmanager
    def new(self, name: str = _NEW) -> Iterator[None]:
        address = urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))
        with override_settings(CLICKHOUSE_URL=address, CLICKHOUSE_MODE=f"cluster:{CLUSTER}"), on_trial():
            yield


@pytest.fixture(scope="module")
def both_databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an engine with the tables of one server and, in another database, those of a cluster."""
    folder = tmp_path_factory.mktemp("moving") / "data"
    with running_engine(folder, program=("-m", "tests.analytics.topology.engine")) as engine:
        hosts = _Hosts(engine.url)
        with hosts.old():
            migrator.migrate()
        with hosts.new():
            migrator.migrate()
        yield engine.url
        client.close()


@pytest.fixture
def hosts(both_databases: str) -> Iterator[_Hosts]:
    found = _Hosts(both_databases)
    yield found
    for of in (found.old, found.new):
        with of():
            _clean()


def _clean() -> None:
    """Opens a database for records and empties it."""
    name = database()
    for table, engine in client.execute(_TABLES, {"database": name}):
        gate, _, other_name = table.partition("_")
        if engine == "Null" and gate in ("ingest", "anonymised") and other_name not in ("", "figures"):
            client.execute(f"RENAME TABLE IF EXISTS {table} TO {gate}")
        elif engine.endswith("MergeTree") and table != "schema_migrations":
            client.execute(f"TRUNCATE TABLE {table}")


@pytest.fixture
def project(hosts: _Hosts, spool: Path) -> uuid.UUID:
    """A project with rows in the old database, whose late figures are still to be made."""
    project: uuid.UUID = make_project().pk
    with hosts.old():
        writer = SpoolWriter(spool)
        for entry in entries_of(project, _ROWS, spread_days=4):
            writer.append(entry)
        writer.close()
        shipper = Shipper(spool, insert=insert_into_store)
        shipper.drain()
        shipper.close()
        _send_spans(project, range(5))
    return project


def _send_spans(project: uuid.UUID, numbers: range) -> None:
    """Stores spans as applications send them, past the spool."""
    rows = [(project, datetime.now(UTC), f"trace-{number}", "span", "call") for number in numbers]
    columns = ("ProjectId", "Timestamp", "TraceId", "SpanId", "SpanName")
    client.insert("otel_traces", columns, rows, token=uuid.uuid4().hex)


def _move(source: str = "llm") -> str:
    output = StringIO()
    call_command("move_analytics", "--from", source, stdout=output)
    return output.getvalue()


def _break_off(monkeypatch: pytest.MonkeyPatch, *, copies: int) -> None:
    """Has the store go away in the middle of a move."""
    execute, begun = client.execute, 0

    def dying(sql: str, *arguments: object, **options: object) -> object:
        nonlocal begun
        begun += sql.startswith(f"{MARK}INSERT INTO")
        if begun <= copies:
            return execute(sql, *arguments, **options)  # type: ignore[arg-type]  # handed on
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "execute", dying)
        with pytest.raises(CommandError, match=r"does not answer\. Run the command again\."):
            _move()


def _is_refused(project: uuid.UUID) -> None:
    with pytest.raises(AnalyticsUnavailableError, match="does not have all tables"):
        client.insert("ingest", ("project_id",), [(project,)], token="refused")


def test_move__broken_off_while_hosts_go_on__loses_and_doubles_nothing(
    hosts: _Hosts, project: uuid.UUID, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosts.new():
        _break_off(monkeypatch, copies=12)
        _is_refused(project)

    # A host with the old settings keeps its records; spans are stored, and a deletion waits.
    with hosts.old():
        _is_refused(project)
        writer = SpoolWriter(spool)
        writer.append(make_entry(project_id=str(project)))
        writer.close()
        _send_spans(project, range(5, 7))
        delete_session(project, "s1", actor="someone")
        finish_due()
    assert Deletion.objects.get().state == DeletionState.PENDING

    with hosts.new():
        output = _move()

        assert ": there already" in output
        assert "every table has what it has in llm" in output
        assert count_requests(project).requests == _ROWS
        assert client.execute(_IN_SESSION, {"project": project}) == [(0,)]
        assert client.execute(_SPANS, {"project": project}) == [(7,)]

    # The last host with the old settings took spans until it ended. It goes on with the new ones.
    with hosts.old():
        _send_spans(project, range(7, 9))
    with hosts.new():
        shipper = Shipper(spool)
        shipper.drain()
        shipper.close()
        _move()

        counts = count_requests(project)
        assert (counts.requests, counts.distinct) == (_ROWS + 1, _ROWS + 1)
        # The figures go on counting the verdict and the failover of an erased request, which its row has no more.
        assert {one.table for one in differences_of(project)} == {"guardrails_hourly", "failovers_quarter_hourly"}
        assert client.execute(_SPANS, {"project": project}) == [(9,)]
        assert client.execute("SELECT count() FROM otel_trace_spans FINAL") == [(9,)]


def test_move__rows_missing_at_the_end__says_so_and_keeps_records_out(
    hosts: _Hosts, project: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = move._copy

    with hosts.new():
        with monkeypatch.context() as patched:
            patched.setattr(move, "_copy", lambda table, part: None if table.name == "payloads" else copy(table, part))
            with pytest.raises(CommandError, match=r"Table payloads is not the same in both databases \(partition 2"):
                _move()
        _is_refused(project)

        _move()

        assert count_requests(project).requests == _ROWS
        assert client.execute("SELECT count() FROM payloads") == [(_ROWS,)]


@tabled
def test_move__what_cannot_be_moved__changes_nothing(hosts: _Hosts, source: str, prepared: str, reason: str) -> None:
    with hosts.old():
        ledger = client.execute("SELECT number, name FROM schema_migrations")
        if prepared:
            client.execute(prepared)
        before = _content()
        with hosts.new(), pytest.raises(CommandError, match=reason):
            _move(source)

        assert _content() == before
        client.execute("TRUNCATE TABLE schema_migrations")
        client.insert("schema_migrations", ("number", "name"), ledger, token=uuid.uuid4().hex)


def test_move__target_with_rows__changes_nothing(hosts: _Hosts, project: uuid.UUID) -> None:
    with hosts.new():
        client.execute("INSERT INTO requests (project_id) VALUES ({p:UUID})", {"p": project})
        before = _content()

        with pytest.raises(CommandError, match=rf"Table requests of {_NEW} has rows already: move into a database"):
            _move()

        assert _content() == before


def test_move__target_without_tables__changes_nothing(hosts: _Hosts) -> None:
    with hosts.old():
        before = _content()

        with hosts.new("llm_bare"), pytest.raises(CommandError, match=r"llm_bare lacks migrations \(\d+\): run `mana"):
            _move()

        assert _content() == before


def _content() -> list[tuple[object, ...]]:
    """Returns the tables of all databases with the number of their rows."""
    sql = "SELECT database, name, total_rows FROM system.tables WHERE startsWith(database, 'llm') ORDER BY ALL"
    return client.execute(sql)
