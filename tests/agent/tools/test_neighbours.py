"""No answer of a tool changes because another project appears."""

from __future__ import annotations

from pathlib import Path

from tests.agent.tools.calls import calls
from tests.agent.tools.world import World, lasting, make_world


def test_every_tool__another_project_appears__answers_as_before(world: World, spool: Path) -> None:
    before = {name: lasting(world.ask(name, **arguments)) for name, arguments in calls(world).items()}
    make_world(spool, "zaffre")

    assert {name: lasting(world.ask(name, **arguments)) for name, arguments in calls(world).items()} == before
