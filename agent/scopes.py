"""What the agent may read for a caller: what the project allows it, and no more than the caller may read itself."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from agent.errors import AgentDisabledError
from core.rights.asking import right_of_tool
from core.rights.roles import Right
from gateway.selectors import AgentSettings, agent_settings


@dataclass(frozen=True, slots=True)
class Granted:
    """The tools of a run or an MCP session: those of the project's `area:read` scopes for which the caller has the
    right himself."""

    scopes: frozenset[str]
    rights: frozenset[Right]

    def allows(self, name: str, scope: str) -> bool:
        return scope in self.scopes and self.entitles_to(name)

    def entitles_to(self, name: str) -> bool:
        """Whether the caller's rights allow the tool, whatever the project's scopes say."""
        return right_of_tool(name) in self.rights


def require_agent(project_id: UUID) -> AgentSettings:
    """Raises AgentDisabledError (403) where the project has switched its agent off."""
    found = agent_settings(project_id)
    if not found.enabled:
        raise AgentDisabledError("The agent is switched off in the settings of this project.")
    return found


def granted(settings: AgentSettings, rights: frozenset[Right]) -> Granted:
    """`rights`: those in the project of the key or person that asks."""
    return Granted(settings.scopes, rights)
