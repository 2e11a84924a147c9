from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.tools.world import World, make_world


@pytest.fixture
def world(db: None, clickhouse: None, spool: Path) -> World:
    return make_world(spool, "umber")


@pytest.fixture
def stranger(db: None, clickhouse: None, spool: Path) -> World:
    """Another project with the same kinds of rows."""
    return make_world(spool, "zaffre")
