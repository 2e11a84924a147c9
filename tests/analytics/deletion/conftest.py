"""The requests of a session to delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.request_log.record import SpoolEntry
from core.models import Project
from tests.analytics.deletion.deleting import SECRET, SESSION, entry
from tests.factories.analytics import store
from tests.factories.core import make_project


@pytest.fixture
def stored(project: Project, spool: Path) -> list[SpoolEntry]:
    """Two requests of the session by two users today and one of yesterday, and others of the same users and days."""
    entries = [
        entry(project, 3, user_id="ottilie", session_id=SESSION, alloc_unit=77, error_message=SECRET),
        entry(project, 2, user_id="bruno", session_id=SESSION, cost_usd="0.0000000001"),
        entry(project, 24 * 60, user_id="ottilie", session_id=SESSION),
        entry(project, 2, user_id="ottilie", session_id="other"),
        entry(project, 1, user_id="bruno"),
        entry(project, 1),
        entry(project, 24 * 60, user_id="ottilie", session_id="other"),
    ]
    store(spool, *entries, entry(make_project(), 3, user_id="ottilie", session_id=SESSION))
    return entries
