"""Gives Django's settings the addresses of the suite's own stores, starts those stores on first use and stops them.

PostgreSQL and Redis start with the first test that asks for the fixture `stores`, as every test with a database does
through `tests/conftest.py`; the ClickHouse engine starts with the first test that asks for `clickhouse`. A run of tests
of pure functions starts no server. Servers that DATABASE_URL, REDIS_URL and CLICKHOUSE_URL name are used instead.
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
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.services import Service, postgresql_url, redis_url, start_clickhouse, start_postgresql, start_redis

_MANAGE = Path(__file__).resolve().parent.parent / "manage.py"
# Fixtures of ours and of pytest-django that start a store, or a service that has stores of its own.
_STORE_FIXTURES = frozenset(
    {"stores", "django_db_setup", "db", "transactional_db", "second_engine", "service", "live_service"}
)

_running: list[Service] = []
_folders: list[Path] = []
# The variables of stores that whoever runs the suite has set.
_given = frozenset(name for name in ("DATABASE_URL", "REDIS_URL", "CLICKHOUSE_URL") if os.environ.get(name))
# The starters of the stores whose addresses the suite has set itself.
_starters: list[Callable[[], tuple[Service, str]]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-stores", action="store_true", help="run only tests that need no database, Redis or ClickHouse"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--no-stores"):
        left_out = [item for item in items if _needs_stores(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _needs_stores(item)]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    # A wrapper, since pytest-django reads the settings in this same hook and also asks to be first.
    _prepare()
    return (yield)


def pytest_unconfigure() -> None:
    _stop()


def pytest_report_header() -> list[str]:
    given = f", those of {', '.join(sorted(_given))} given" if _given else ""
    return [f"stores: started on first use{given}", f"var: {os.environ['VAR_DIR']}"]


@pytest.fixture(scope="session")
def stores() -> None:
    """PostgreSQL and Redis, running at the addresses that Django's settings name until the session ends."""
    while _starters:
        service, _ = _starters.pop()()
        _running.append(service)


@pytest.fixture(scope="session")
def clickhouse_engine(stores: None) -> Iterator[None]:
    """A ClickHouse with the analytics tables, at the address that Django's settings name."""
    from django.core.management import call_command

    from analytics.clickhouse import client

    engine = None
    if "CLICKHOUSE_URL" not in _given:
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


def _needs_stores(item: pytest.Item) -> bool:
    """pytest-django asks for the database of a marked test only when it runs: no fixture names it before."""
    is_marked = item.get_closest_marker("django_db") is not None
    return is_marked or not _STORE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _prepare() -> None:
    # Short: a Unix socket's path has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    folder.chmod(0o755)
    _folders.append(folder)
    atexit.register(_stop)
    _set_environment(folder)
    if "DATABASE_URL" not in _given:
        os.environ["DATABASE_URL"] = postgresql_url(folder / "pg")
        _starters.append(partial(start_postgresql, folder / "pg"))
    if "REDIS_URL" not in _given:
        os.environ["REDIS_URL"] = redis_url(folder / "redis")
        _starters.append(partial(start_redis, folder / "redis"))


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
