"""What the agent may read for a caller: what the project allows it, and no more than the caller may read itself."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from agent.errors import AgentDisabledError
from core.keys import MANAGE
from gateway.models import AGENT_SCOPES
from gateway.selectors import AgentSettings, agent_settings

# A key of the management API, and staff, may read everything of their project there.
_READABLE = {MANAGE: frozenset(AGENT_SCOPES)}


def require_agent(project_id: UUID) -> AgentSettings:
    """Raises AgentDisabledError (403) where the project has switched its agent off."""
    found = agent_settings(project_id)
    if not found.enabled:
        raise AgentDisabledError("The agent is switched off in the settings of this project.")
    return found


def granted_scopes(settings: AgentSettings, caller: Iterable[str]) -> frozenset[str]:
    """The `area:read` scopes of a run or an MCP session. `caller`: the scopes of the key or session that asks."""
    readable = frozenset[str]().union(*(_READABLE.get(scope, frozenset()) for scope in caller))
    return settings.scopes & readable
