from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.agent.tools.world import World
from tests.factories.analytics import make_entry, store


def test_search__requests_of_the_agent_itself__are_left_out(world: World, spool: Path) -> None:
    """Without this rule the question to the agent would be the newest request that contains its words."""
    values: dict[str, Any] = {"project_id": str(world.project.pk), "source": "agent", "session_id": "with-the-agent"}
    requests = [
        make_entry(b'{"messages": [{"role": "user", "content": "Who wants refunds?"}]}', **values) for _ in "ab"
    ]
    store(spool, *requests)

    found = world.ask("search_requests", query="refunds", limit=3)

    assert (found["count"], len(found["results"]), found["left_out_asked_by_agent"]) == (1, 1, 2)
    assert found["results"][0]["session_id"] == world.session_id
    assert "end_date before" in found["older"]
    own = world.ask("search_requests", query="refunds", session_id="with-the-agent")
    assert (own["count"], own["left_out_asked_by_agent"]) == (2, 0)
