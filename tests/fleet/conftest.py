from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import start_service as start_service
from tests.plugin import place


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yields a folder that other users can enter: PostgreSQL and PgBouncer refuse to run as root. Its name is short
    enough for the Unix sockets in it."""
    path = Path(tempfile.mkdtemp(prefix="fleet-", dir=place()))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)
