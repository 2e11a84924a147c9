from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from clickhouse_driver import Client
from clickhouse_driver import errors as driver_errors
from cryptography.fernet import Fernet

from tests.gateway.service import free_port
from tests.live.conftest import StartService
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.live.sql_dump import sql_dump
from tests.live.start import later, store
from tests.services import START_SECONDS
from tests.waiting import wait_until


def _serve(var_dir: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "serve", *arguments],
        cwd=ROOT,
        env={**minimal_environment(var_dir), **environment},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )


def test_serve__second_on_the_same_var_dir__refuses_with_one_line(live_service: LiveService) -> None:
    second = _serve(live_service.var_dir)

    assert second.returncode == 1
    assert second.stdout == ""
    assert second.stderr.strip().count("\n") == 0
    assert f"already runs on {live_service.var_dir} as process {live_service.process.pid}" in second.stderr
    assert live_service.base_url in second.stderr


def test_serve__port_taken__names_host_and_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = _serve(tmp_path, PORT=str(port))

    assert result.returncode == 1
    assert f"HOST 127.0.0.1, PORT {port}: Address already in use" in result.stderr
    assert "Traceback" not in result.stderr


def test_serve__no_migrate_on_empty_stores__refuses_and_names_the_command(tmp_path: Path) -> None:
    result = _serve(tmp_path, "--no-migrate", "--without", "celery", WEB_WORKERS="1")

    assert result.returncode == 1
    last_line = result.stderr.strip().splitlines()[-1]
    assert re.search(r"lacks \d+ migrations of this version.*`manage.py migrate_all`", last_line)
    assert "API key" not in result.stdout


def test_serve__mode_of_the_analytics_store_that_was_never_proven__refuses_with_the_way_out(tmp_path: Path) -> None:
    address = {"CLICKHOUSE_URL": "clickhouse://127.0.0.1:1/llm", "CLICKHOUSE_MODE": "cluster:prod"}
    result = _serve(tmp_path, "--without", "celery", WEB_WORKERS="1", **address)

    assert result.returncode == 1
    assert "CLICKHOUSE_MODE=cluster:prod was never run on servers of its kind" in result.stderr
    assert "`manage.py prove_analytics`" in result.stderr
    assert "Traceback" not in result.stderr


def test_serve__other_encryption_keys_than_those_of_the_secrets__refuses(
    start_service: StartService, tmp_path: Path
) -> None:
    service = start_service({"WEB_WORKERS": "1"}, ["--without", "celery", "--without", "shipper"])
    assert service.stop() == 0

    result = _serve(service.var_dir, ENCRYPTION_KEYS=Fernet.generate_key().decode(), WEB_WORKERS="1")

    assert result.returncode == 1
    assert "ENCRYPTION_KEYS has none of the keys" in result.stderr


def test_serve__database_server_away__says_where_in_one_line(tmp_path: Path) -> None:
    url = "postgresql://gateway:private@127.0.0.1:1/gateway"
    secrets = {"SECRET_KEY": "of this test", "ENCRYPTION_KEYS": Fernet.generate_key().decode()}

    result = _serve(tmp_path, DATABASE_URL=url, DATABASE_WAIT_SECONDS="1", SANDBOX="0", WEB_WORKERS="1", **secrets)

    assert result.returncode == 1
    last_line = result.stderr.strip().splitlines()[-1]
    assert "The SQL database cannot be used, see DATABASE_URL: " in last_line
    assert "127.0.0.1" in last_line
    assert result.stderr.count("database.waiting") == 1
    assert "Traceback" not in result.stderr
    assert "private" not in result.stderr


def test_serve__metrics_port_taken__names_host_and_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = _serve(tmp_path, METRICS_PORT=str(port))

    assert result.returncode == 1
    assert f"METRICS_HOST 127.0.0.1, METRICS_PORT {port}: Address already in use" in result.stderr
    assert "Traceback" not in result.stderr


_OLD_LEDGER = (
    "CREATE TABLE IF NOT EXISTS schema_migrations (number UInt32, name String) ENGINE = MergeTree ORDER BY number",
    "TRUNCATE TABLE schema_migrations",
    "INSERT INTO schema_migrations (number, name) SELECT 21, '0021_texts'",
)


def _make_old(port: int) -> None:
    client = Client.from_url(later(port))

    def is_there() -> bool:
        try:
            client.execute("SELECT 1")
        except (driver_errors.NetworkError, EOFError, OSError):
            return False
        return True

    wait_until(is_there, seconds=START_SECONDS, what="the store")
    for statement in _OLD_LEDGER:
        client.execute(statement)
    client.disconnect()


@pytest.mark.parametrize("command", ["serve", "migrate_all"])
def test_start__store_that_this_version_cannot_upgrade__makes_no_sql_table_and_names_the_way_out(
    tmp_path: Path, command: str
) -> None:
    port = free_port()
    with store(tmp_path / "store", port):
        _make_old(port)
        environment = {**minimal_environment(tmp_path / "var"), "CLICKHOUSE_URL": later(port)}
        arguments = [sys.executable, "manage.py", command]
        result = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert result.returncode == 1
    assert "is at migration 21, and this version begins at 56" in result.stderr
    assert "`manage.py migrate_analytics` of revision" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Serving" not in result.stdout
    assert "CREATE TABLE" not in sql_dump(tmp_path / "var")


def test_start__embedded_store_that_this_version_cannot_upgrade__leaves_the_sql_database_as_it_was(
    start_service: StartService, tmp_path: Path
) -> None:
    service = start_service()
    assert service.stop() == 0
    port = free_port()
    (tmp_path / "old").mkdir()
    (service.var_dir / "clickhouse").rename(tmp_path / "old" / "data")
    with store(tmp_path / "old", port):
        _make_old(port)
    (tmp_path / "old" / "data").rename(service.var_dir / "clickhouse")
    before = sql_dump(service.var_dir)

    result = _serve(service.var_dir)

    assert result.returncode == 1
    assert "`manage.py serve` of revision" in result.stderr
    assert "Serving" not in result.stdout
    assert sql_dump(service.var_dir) == before
