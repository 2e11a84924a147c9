"""Starts what the suite needs before Django reads its settings, and stops it at the end.

DATABASE_URL, REDIS_URL and CLICKHOUSE_URL given in the environment are used instead. The ClickHouse engine starts when
the first test asks for the fixture `clickhouse`.
"""

from __future__ import annotations

import atexit
import base64
import io
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.services import Service, start_clickhouse, start_postgresql, start_redis

_MANAGE = Path(__file__).resolve().parent.parent / "manage.py"

_running: list[Service] = []
_folders: list[Path] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    # A wrapper, since pytest-django reads the settings in this same hook and also asks to be first.
    _start()
    return (yield)


def pytest_unconfigure() -> None:
    _stop()


def pytest_report_header() -> list[str]:
    own = {service.name: service.version for service in _running}
    variables = {"postgresql": "DATABASE_URL", "redis": "REDIS_URL"}
    told = [f"{name} {own[name] if name in own else 'by ' + url}" for name, url in variables.items()]
    told.append("clickhouse " + ("by CLICKHOUSE_URL" if os.environ.get("CLICKHOUSE_URL") else "engine on first use"))
    return ["services: " + ", ".join(told), f"var: {os.environ['VAR_DIR']}"]


@pytest.fixture(scope="session")
def clickhouse_engine() -> Iterator[None]:
    """A ClickHouse with the analytics tables, at the address that Django's settings name."""
    from django.core.management import call_command

    from analytics.clickhouse import client

    engine = None
    if not os.environ.get("CLICKHOUSE_URL"):
        run = Path(os.environ["VAR_DIR"]) / "run"
        run.mkdir(exist_ok=True)
        engine = start_clickhouse(_folders[0] / "clickhouse", _MANAGE, run / "clickhouse.url")
        _running.append(engine)
    call_command("migrate_analytics", stdout=io.StringIO())
    yield
    client.close()
    if engine is not None:
        _running.remove(engine)
        engine.stop()


@pytest.fixture
def clickhouse(clickhouse_engine: None) -> Iterator[None]:
    """Empty analytics tables, emptied again afterwards."""
    from analytics.clickhouse import client

    yield
    filled = client.execute(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
        " AND name != 'schema_migrations' AND total_rows > 0"
    )
    for (table,) in filled:
        client.execute(f"TRUNCATE TABLE `{table}`")


def _start() -> None:
    # Short: a Unix socket's path has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    folder.chmod(0o755)
    _folders.append(folder)
    atexit.register(_stop)
    _set_environment(folder)
    if not os.environ.get("DATABASE_URL"):
        service, os.environ["DATABASE_URL"] = start_postgresql(folder / "pg")
        _running.append(service)
    if not os.environ.get("REDIS_URL"):
        service, os.environ["REDIS_URL"] = start_redis(folder / "redis")
        _running.append(service)


def _set_environment(folder: Path) -> None:
    """The suite's own settings; keys and addresses of whoever runs it stay out."""
    foreign = {"HOST", "PORT", "PUBLIC_URL", "SECRET_KEY", "ENCRYPTION_KEYS", "DEBUG", "SPOOL_DIR", "WEB_WORKERS"}
    for name in list(os.environ):
        if name in foreign or name.endswith("_API_KEY"):
            del os.environ[name]
    os.environ.update({"VAR_DIR": str(folder / "var"), "SANDBOX": "0", "ALLOW_PRIVATE_UPSTREAMS": "1"})
    # Beside a database server they are never made up.
    os.environ["SECRET_KEY"] = secrets.token_urlsafe(48)
    os.environ["ENCRYPTION_KEYS"] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    # A machine that tests share may take its time for a sign of life; those of a hung store set their own.
    os.environ["CLICKHOUSE_SILENT_SECONDS"] = "20"
    (folder / "var").mkdir()


def _stop() -> None:
    while _running:
        # PostgreSQL waits for its clients on SIGTERM, and ends their sessions on SIGINT.
        service = _running.pop()
        service.stop(signal.SIGINT if service.name == "postgresql" else signal.SIGTERM)
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
