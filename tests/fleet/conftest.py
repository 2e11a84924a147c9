from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.conftest import made
from tests.fleet.servers import binary
from tests.live.conftest import start_service as start_service
from tests.plugin import place
from tests.services import ServiceError

_PROGRAMS = ("redis-server", "redis-sentinel", "pgbouncer", "haproxy")


@pytest.fixture(scope="session", autouse=True)
def servers() -> None:
    try:
        for name in _PROGRAMS:
            binary(name)
    except ServiceError:
        made("servers")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Other users can enter it: PostgreSQL and PgBouncer refuse to run as root. Its name is short enough for Unix
    sockets in it."""
    with _made_folder() as path:
        yield path


@pytest.fixture(scope="module")
def lasting_folder() -> Iterator[Path]:
    with _made_folder() as path:
        yield path


@contextmanager
def _made_folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="fleet-", dir=place()))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)
