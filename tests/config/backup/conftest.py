"""An installation to back up, and its stores wiped."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from analytics.clickhouse import backup as store
from core.encryption.canary import ensure_canary
from core.models import Project
from tests.factories.core import make_project
from tests.factories.everything import one_of_everything


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def full(transactional_db: None) -> Project:
    """A project with a row in nearly each table of the SQL database."""
    ensure_canary()
    project = make_project()
    one_of_everything(project)
    return project


@pytest.fixture
def wipe(clickhouse: None) -> Iterator[Callable[[], None]]:
    """`wipe()` leaves a SQL database with tables without rows, and an analytics store without tables."""

    def wiped() -> None:
        call_command("flush", interactive=False, verbosity=0)
        store.drop_tables()

    yield wiped
    call_command("migrate_analytics", stdout=io.StringIO())
