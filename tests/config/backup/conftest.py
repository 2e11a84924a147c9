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
    ensure_canary()
    project = make_project()
    one_of_everything(project)
    return project


@pytest.fixture
def wipe(clickhouse: None) -> Iterator[Callable[[], None]]:
    """`wipe()` empties the SQL tables and removes those of the analytics store."""

    def wiped() -> None:
        call_command("flush", interactive=False, verbosity=0)
        store.drop_tables()

    yield wiped
    call_command("migrate_analytics", stdout=io.StringIO())
