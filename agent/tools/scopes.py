"""The agent's access for a caller: the tools that the project allows and for which the caller has the right."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from agent.errors import AgentDisabledError
from core.rights.asking import right_of_tool
from core.roles import Right
from gateway.selectors import AgentSettings, agent_settings


@dataclass(frozen=True, slots=True)
class Granted:
    """The tools of a run or an MCP session: those in the project's scopes for which the caller has the right."""

    scopes: frozenset[str]
    rights: frozenset[Right]

    def allows(self, name: str, scope: str) -> bool:
        return scope in self.scopes and self.entitles_to(name)

    def entitles_to(self, name: str) -> bool:
        """Returns whether the caller's rights allow the tool, whatever the project's scopes are."""
        return right_of_tool(name) in self.rights


def require_agent(project_id: UUID) -> AgentSettings:
    """Raises AgentDisabledError (403) when the project has switched its agent off."""
    found = agent_settings(project_id)
    if not found.enabled:
        raise AgentDisabledError("The agent is switched off in the settings of this project.")
    return found


def granted(settings: AgentSettings, rights: frozenset[Right]) -> Granted:
    """Returns the granted tools; `rights` are those in the project of the calling key or person."""
    return Granted(settings.scopes, rights)
