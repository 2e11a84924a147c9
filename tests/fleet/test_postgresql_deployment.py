from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db.utils import ConnectionHandler

from config.deployment import postgresql_servers
from config.deployment.problem import Problem
from config.settings.database import _postgresql
from tests.fleet.servers import haproxy, pgbouncer
from tests.live.service import ROOT, minimal_environment
from tests.services import START_SECONDS, start_postgresql
from tests.stores import shared_secrets

# A load balancer that knows nothing of roles: it hands connections to both servers in turn.
_IN_TURN = """\
global
    stats socket {{socket}} mode 600 level admin
defaults
    mode tcp
    timeout connect 2s
    timeout client 300s
    timeout server 300s
listen postgresql
    bind 127.0.0.1:{{port}}
    balance roundrobin
    server one unix@{one}/.s.PGSQL.5432
    server other unix@{other}/.s.PGSQL.5432
"""


@pytest.fixture
def primary(folder: Path) -> Iterator[str]:
    server, url = start_postgresql(folder / "pg")
    yield url
    server.stop(signal.SIGINT)


@pytest.fixture(scope="module")
def lasting_primary(lasting_folder: Path) -> Iterator[str]:
    server, url = start_postgresql(lasting_folder / "pg")
    yield url
    server.stop(signal.SIGINT)


@pytest.fixture
def replica(folder: Path, primary: str) -> Iterator[str]:
    server, url = start_postgresql(folder / "replica", replica_of=folder / "pg")
    yield url
    server.stop(signal.SIGINT)


def _lead_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_servers, "connection", ConnectionHandler({"default": _postgresql(url)})["default"])


def refused(url: str, monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    _lead_to(url, monkeypatch)
    return list(postgresql_servers.refuse())


def advised(url: str, monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    _lead_to(url, monkeypatch)
    return list(postgresql_servers.advise())


def test_refuse__primary_with_its_replica_named_too__nothing(
    folder: Path, replica: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = f"postgresql://postgres@/postgres?host={folder}/replica,{folder}/pg"

    assert refused(both, monkeypatch) == []
    assert advised(both, monkeypatch) == []


def test_refuse__replica_alone__says_so_and_serve_ends_with_it(
    folder: Path, replica: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [problem] = refused(replica, monkeypatch)
    assert problem.is_fatal
    assert "leads to replicas alone" in problem.message

    given = {**minimal_environment(folder / "var"), **shared_secrets(), "DATABASE_URL": replica}
    served = subprocess.run(
        [sys.executable, "manage.py", "serve", "--without", "celery"],
        cwd=ROOT,
        env=given,
        capture_output=True,
        text=True,
        timeout=4 * START_SECONDS,
        check=False,
    )

    assert served.returncode == 1
    assert problem.message in served.stderr.strip().splitlines()[-1]


def test_refuse__transactions_read_only_by_default__says_so(primary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(primary, autocommit=True) as server:
        server.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")

    [problem] = refused(primary, monkeypatch)

    assert "servers whose transactions are read-only" in problem.message


def test_refuse__two_primaries_behind_one_address__counts_them(
    folder: Path, lasting_folder: Path, lasting_primary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, _ = start_postgresql(folder / "other")
    turns = _IN_TURN.format(one=lasting_folder / "pg", other=folder / "other")
    try:
        with haproxy(folder / "proxy", turns) as proxy:
            [problem] = refused(f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres", monkeypatch)
    finally:
        other.stop(signal.SIGINT)

    assert problem.is_fatal
    assert "2 servers in turn" in problem.message


def test_refuse__nobody_answers__nothing_since_another_check_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused("postgresql://u@127.0.0.1:1/db", monkeypatch) == []
    assert advised("postgresql://u@127.0.0.1:1/db", monkeypatch) == []


@pytest.mark.parametrize(
    ("mode", "size", "found"),
    [
        ("transaction", 3, None),
        ("session", 3, None),
        ("transaction", 1, "more connections"),
        ("statement", 3, "allows no transactions"),
    ],
)
def test_advise__pooler__is_told_from_one_that_cannot_be_used(
    folder: Path, lasting_primary: str, monkeypatch: pytest.MonkeyPatch, mode: str, size: int, found: str | None
) -> None:
    monkeypatch.setattr(postgresql_servers, "_SECONDS", 1.0)
    with pgbouncer(folder / "pooler", lasting_primary, pool_mode=mode, pool_size=size) as pooler:
        assert refused(pooler.url, monkeypatch) == []
        problems = advised(pooler.url, monkeypatch)

    assert [problem.is_fatal for problem in problems] == ([True] if found else [])
    assert found is None or found in problems[0].message


def test_advise__user_who_may_not_change_a_table_nor_make_one__names_both(
    primary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(primary, autocommit=True) as server:
        server.execute("CREATE TABLE core_project (id int); CREATE TABLE of_another_program (id int)")
        server.execute("CREATE ROLE gateway LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO gateway")

    rows, tables = advised(primary.replace("postgres@", "gateway@", 1), monkeypatch)

    assert rows.is_fatal
    assert "all rows of core_project:" in rows.message
    assert not tables.is_fatal
    assert "may not make tables" in tables.message
