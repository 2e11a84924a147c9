"""No answer of a tool changes because another project appears."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.agent.tools.calls import calls
from tests.agent.tools.world import World, make_world

# Fields that hold the moment of the call, or the range before one that goes on.
_WAITING = "shipping_behind"
_OF_THE_MOMENT = {"generated_at", "resets_in_seconds", "start", "previous", "range_before"}


def test_every_tool__another_project_appears__answers_as_before(world: World, spool: Path) -> None:
    before = {name: _lasting(world.ask(name, **arguments)) for name, arguments in calls(world).items()}
    make_world(spool, "zaffre")

    assert {name: _lasting(world.ask(name, **arguments)) for name, arguments in calls(world).items()} == before


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(item) for name, item in value.items() if name not in _OF_THE_MOMENT}
    if isinstance(value, list):
        # What waits in the spools of the whole machine is counted in seconds.
        return [_lasting(item) for item in value if not (isinstance(item, dict) and item.get("kind") == _WAITING)]
    return value
