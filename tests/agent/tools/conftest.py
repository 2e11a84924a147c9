from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.tools.world import World, make_world
from tests.kept import Keep


@pytest.fixture
def world(db: None, clickhouse: None, spool: Path) -> World:
    return make_world(spool, "umber")


@pytest.fixture(scope="module")
def kept_world(keep: Keep) -> World:
    """The world of a module whose tests store no requests."""
    return keep(lambda spool: make_world(spool, "umber"))
