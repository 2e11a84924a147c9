"""Gives Django's settings the addresses of the suite's own stores, starts those stores on first use and stops them.

PostgreSQL and Redis start with the first test that asks for the fixture `stores`, as every test with a database does
through `tests/conftest.py`; the ClickHouse engine starts with the first test that asks for `clickhouse`. A run of tests
of pure functions starts no server. Servers that DATABASE_URL, REDIS_URL and CLICKHOUSE_URL name are used instead.
"""

from __future__ import annotations

import atexit
import base64
import gc
import io
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path

import pytest
from pytest_django.plugin import blocking_manager_key

from tests import forks, night
from tests.migrated import SHARED, TEMPLATE, place_tables, start_cluster
from tests.services import Service, postgresql_url, redis_url, start_clickhouse, start_redis

_MANAGE = Path(__file__).resolve().parent.parent / "manage.py"
# The names of fixtures that start a store, or start a service that has stores of its own.
_STORE_FIXTURES = frozenset(
    {"stores", "django_db_setup", "db", "transactional_db", "second_engine", "service", "live_service"}
)

# A run of a unit holds less than 200 MB there, and four run side by side. The product warns below 2 GiB.
_MEMORY, _MIN_ROOM = Path("/dev/shm"), 4 << 30

_running: list[Service] = []
_folders: list[Path] = []
# The variables that name a store and were set before the suite started.
_given = frozenset(name for name in ("DATABASE_URL", "REDIS_URL", "CLICKHOUSE_URL") if os.environ.get(name))
# The starters of the stores whose addresses the suite has set itself.
_starters: list[Callable[[], tuple[Service, str]]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-stores", action="store_true", help="run only tests that need no database, Redis or ClickHouse"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if _is_left_out(config, item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_left_out(config, item)]


def _is_left_out(config: pytest.Config, item: pytest.Item) -> bool:
    waits = not night.NIGHT and item.get_closest_marker("night") is not None
    return waits or (config.getoption("--no-stores") and _needs_stores(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    # The hook is a wrapper, since pytest-django reads the settings in the same hook and is also declared to run first.
    _keep_bytecode()
    # What is collected stays: the collector would look at it again and again. `pytest_collection_finish` lets it run.
    gc.disable()
    _prepare()
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Takes modules and tests out of the garbage collector's view: they stay until the end."""
    gc.freeze()
    gc.enable()
    option = session.config.option
    # Each lane has a process that forks of its own.
    if session.items and not option.collectonly and not getattr(option, "lanes", 0):
        begin_forks(session.config)


def begin_forks(config: pytest.Config) -> None:
    """Forks programs of the product from this process, in which pytest-django forbids the database."""
    forks.begin(config.stash[blocking_manager_key].unblock)


def pytest_unconfigure() -> None:
    forks.end()
    stop()


def own_stores() -> None:
    _running.clear()
    _folders.clear()
    _starters.clear()
    _prepare()


def pytest_report_header() -> list[str]:
    given = f", those of {', '.join(sorted(_given))} given" if _given else ""
    time = "all tests" if night.NIGHT else "by day; NIGHT=1 adds the tests and examples of the night"
    return [f"stores: started on first use{given}", f"var: {os.environ['VAR_DIR']}", time]


@pytest.fixture(scope="session")
def stores() -> None:
    while _starters:
        service, _ = _starters.pop()()
        _running.append(service)
    if SHARED in os.environ and "DATABASE_URL" not in _given:
        from django.db import connection

        # The database of the tests is a copy of the one that has all tables, and needs no migration.
        connection.settings_dict["TEST"] |= {"TEMPLATE": TEMPLATE, "MIGRATE": False}


@pytest.fixture(scope="session")
def clickhouse_engine(stores: None) -> Iterator[None]:
    from django.core.management import call_command

    from analytics.clickhouse import client

    engine = None
    if "CLICKHOUSE_URL" not in _given:
        run = Path(os.environ["VAR_DIR"]) / "run"
        run.mkdir(exist_ok=True)
        place_tables(_folders[0] / "clickhouse" / "data")
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
    from tests.kept import empty_tables

    yield
    empty_tables()


def _needs_stores(item: pytest.Item) -> bool:
    """A mark for a database names its fixture only when the test runs."""
    is_marked = item.get_closest_marker("django_db") is not None
    return is_marked or not _STORE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def place() -> Path:
    """Returns the folder for the files of the suite's stores and services: one in memory, or else /tmp.

    ClickHouse makes and removes hundreds of small files for each insert and TRUNCATE, and ext4 looks for each new one
    among all deleted in the last seconds: up to half of the engine's CPU. A folder in memory is used if it has room and
    lets programs run, which a container's often does not.
    """
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK | os.X_OK):
        return Path("/tmp")
    disk = os.statvfs(_MEMORY)
    has_room = disk.f_bavail * disk.f_frsize >= _MIN_ROOM
    return _MEMORY if has_room and not disk.f_flag & os.ST_NOEXEC else Path("/tmp")


def _keep_bytecode() -> None:
    """Compiles modules once for the suite and its processes. Containers often forbid that."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _prepare() -> None:
    # The folder's name is short because a Unix socket's path has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir=place()))
    folder.chmod(0o755)
    _folders.append(folder)
    atexit.register(stop)
    if folder.parent == _MEMORY:
        # The fixture `tmp_path` makes its folders there too, where most services of tests live.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    _set_environment(folder)
    if "DATABASE_URL" not in _given:
        os.environ["DATABASE_URL"] = postgresql_url(folder / "pg")
        _starters.append(partial(start_cluster, folder / "pg"))
    if "REDIS_URL" not in _given:
        os.environ["REDIS_URL"] = redis_url(folder / "redis")
        _starters.append(partial(start_redis, folder / "redis"))


def _set_environment(folder: Path) -> None:
    foreign = {"HOST", "PORT", "PUBLIC_URL", "SECRET_KEY", "ENCRYPTION_KEYS", "DEBUG", "SPOOL_DIR", "WEB_WORKERS"}
    for name in list(os.environ):
        if name in foreign or name.endswith("_API_KEY"):
            del os.environ[name]
    os.environ.update({"VAR_DIR": str(folder / "var"), "SANDBOX": "0", "ALLOW_PRIVATE_UPSTREAMS": "1"})
    # Beside a database server the product generates no secrets, so the suite has to give some.
    os.environ["SECRET_KEY"] = secrets.token_urlsafe(48)
    os.environ["ENCRYPTION_KEYS"] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    # A store on a busy machine may be silent for long; the tests of a hung store set a limit of their own.
    os.environ["CLICKHOUSE_SILENT_SECONDS"] = "20"
    (folder / "var").mkdir()


def stop() -> None:
    while _running:
        # PostgreSQL waits for its clients on SIGTERM, and ends their sessions on SIGINT.
        service = _running.pop()
        service.stop(signal.SIGINT if service.name == "postgresql" else signal.SIGTERM)
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
